//! Measures a real device: timed requests past the page cache, at a given depth.
//!
//! [`Target`] is the measured device or file, [`run`] lets an engine serve requests from it, and a [`Sink`]
//! takes each request's time: [`Counted`] for distributions and rates, [`Trace`] for every single one.
//! [`measure`] and [`trace`] do both steps at once.

mod buffer;
mod engine;
mod error;
mod target;
mod threads;
mod uring;

pub use engine::{Counted, Done, Engine, Limit, Measured, Sink, Trace, fill, measure, run, trace};
pub use error::ProbeError;
pub use target::Target;
