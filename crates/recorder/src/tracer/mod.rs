//! Decodes kernel tracepoints, read in binary from private instances of the tracer, into events.
//!
//! A tracer is switched on for a burst at a time; between bursts it costs the machine nothing. The data of a
//! burst is decoded later: [`BurstTracer::begin`] and [`BurstTracer::end`], then [`RawBurst::decode`].

mod bpf;
mod burst_tracer;
mod clients;
mod completions;
mod decode;
mod error;
mod family;
mod foreign;
mod format;
mod instance;
mod mapping;
mod merge;
mod open_program;
mod open_watch;
mod opens;
mod options;
mod page;
mod paths;
mod raw_burst;
mod reader;
mod replies;
mod reply_program;
mod reply_watch;
mod spool;
#[cfg(test)]
mod tests;
mod tracepoints;
mod tracers;

pub use burst_tracer::BurstTracer;
pub use clients::clients_in;
pub use completions::Completions;
pub use decode::Decoder;
pub use error::TracerError;
pub use family::Family;
pub use foreign::CpuTime;
pub use options::Options;
pub use raw_burst::{Decoded, RawBurst};
