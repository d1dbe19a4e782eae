//! Drives a device model with requests on virtual time and sums up the results.
//!
//! [`Job`] is a simulation as data; [`Job::run`] runs it. Requests come from a file ([`Trace`]) or from an
//! access pattern; [`run`] owns time and submits them to the device; a [`Report`] has the figures. Memory
//! does not grow with the number of requests, except where measured times are compared.

mod job;
mod report;
mod run;
mod summary;
mod trace;

pub use job::{Job, parse_precondition};
pub use report::{Comparison, TimesFile, demerit};
pub use report::{OpReport, Report};
pub use run::{Asked, Limited, Source};
pub use run::{Limits, Pace, run};
pub use summary::{Summary, summarize, summarize_all};
pub use tierwise_input::UserError;
pub use trace::{Column, Trace};
