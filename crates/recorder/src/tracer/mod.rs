//! Records threads, calls and requests by programs in the kernel, and makes events of the records.
//!
//! The programs are attached for a burst at a time; between bursts they cost the machine nothing. The records of a burst
//! are decoded later: `BurstTracer::begin` and `BurstTracer::end`, then `RawBurst::decode`.

mod burst_tracer;
mod kernel;
mod kernel_record;
mod opens;
mod raw_burst;
mod replies;

pub(crate) use burst_tracer::BurstTracer;
pub use burst_tracer::TracerStorage;
pub use kernel::why_tracing_impossible;
pub(crate) use kernel::{RequestCompletions, require_tracing_possible};
pub(crate) use raw_burst::{BurstSummary, RawBurst, client_threads_in_burst};

#[cfg(test)]
mod tests {
    //! The tracer on records written here, and on a real kernel where that is possible.

    mod decoding;
    mod live;
    mod streams;
}
