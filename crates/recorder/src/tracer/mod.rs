//! Decodes kernel tracepoints, read in binary from private instances of the tracer, into events.
//!
//! A tracer is switched on for a burst at a time; between bursts it costs the machine nothing. The data of a
//! burst is decoded later: `BurstTracer::begin` and `BurstTracer::end`, then `RawBurst::decode`.

mod bpf;
mod burst_tracer;
pub(crate) mod decode;
mod instance;
mod opens;
mod raw_burst;
mod replies;

pub(crate) use burst_tracer::BurstTracer;
pub use burst_tracer::Places;
pub(crate) use decode::Decoder;
pub(crate) use instance::Completions;
pub(crate) use raw_burst::{BurstSummary, RawBurst, clients_in};

#[cfg(test)]
mod tests {
    //! The tracer on pages written here, and on a real kernel where that is possible.

    mod decoding;
    mod live;
    mod pages;
}
