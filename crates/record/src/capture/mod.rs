//! Decodes kernel tracepoints, read in binary from private instances of the tracer, into events.
//!
//! A capture is switched on for a burst at a time; between bursts it costs the machine nothing. The data of a
//! burst is decoded later: [`Capture::begin`] and [`Capture::end`], then [`RawBurst::decode`].

mod bpf;
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
mod processes;
mod raw_burst;
mod reader;
mod replies;
mod reply_program;
mod reply_watch;
mod session;
mod spool;
#[cfg(test)]
mod tests;
mod tracepoints;
mod tracers;

pub use clients::clients_in;
pub use completions::Completions;
pub use decode::Decoder;
pub use error::CaptureError;
pub use family::Family;
pub use foreign::CpuTime;
pub use options::Options;
pub use processes::{LiveThread, OpenFile, open_files};
pub use raw_burst::{Decoded, RawBurst};
pub use session::Capture;
