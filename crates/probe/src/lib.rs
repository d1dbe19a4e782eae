//! Measures a real device: requests past the page cache, at a depth, each with its time.
//!
//! [`Target`] is what is measured, [`run`] lets an engine serve requests from it, and a [`Sink`] takes each
//! request's time: [`Counted`] for distributions and rates, [`Trace`] for every single one. [`measure`] and [`trace`]
//! are those two at once.

mod buffer;
mod engine;
mod error;
mod measure;
mod sink;
mod supply;
mod target;
mod threads;
mod uring;

pub use engine::{Engine, fill, run};
pub use error::ProbeError;
pub use measure::{measure, trace};
pub use sink::{Counted, Measured, Sink, Trace};
pub use supply::{Done, Limit};
pub use target::Target;
