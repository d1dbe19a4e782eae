//! Access patterns by name, for the simulator and for the probe of a real device.
//!
//! A [`Pattern`] is data; [`Pattern::requests`] is its endless stream of requests, the same for the same seed.

mod name;
mod stream;

use tierwise_device::SECTOR_BYTES;

pub use name::{CRYSTALDISKMARK, Line, PatternError};
pub use stream::Requests;

/// The requests to a device, and how many are outstanding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pattern {
    /// Share of the requests that read, 0 to 1; the others write.
    pub read_share: f64,
    /// Whether each request starts anywhere, at a multiple of the block; else it starts where the previous
    /// one ended, from the start of the span and again from there at its end.
    pub random: bool,
    /// Size of every request, in bytes, a multiple of [`SECTOR_BYTES`].
    pub block_bytes: u32,
    /// Requests outstanding at a time, at least 1.
    pub depth: u32,
    /// Number of writes after which a flush follows; 0: none.
    pub flush_every: u32,
    /// Time between a completion and the request that takes its place, in nanoseconds.
    pub think_ns: u64,
}

impl Pattern {
    /// Requests that read, one at a time and without a pause.
    pub const fn read(random: bool, block_bytes: u32) -> Self {
        Self {
            read_share: 1.0,
            random,
            block_bytes,
            depth: 1,
            flush_every: 0,
            think_ns: 0,
        }
    }

    /// Requests that write, one at a time and without a pause.
    pub const fn write(random: bool, block_bytes: u32) -> Self {
        Self {
            read_share: 0.0,
            ..Self::read(random, block_bytes)
        }
    }

    /// The same with this number outstanding at a time.
    pub const fn with_depth(self, depth: u32) -> Self {
        Self { depth, ..self }
    }

    /// Size of every request, in sectors.
    pub fn block_sectors(&self) -> u32 {
        self.block_bytes / SECTOR_BYTES as u32
    }

    /// The endless stream of requests within the first `span_sectors`; the same seed gives the same.
    ///
    /// # Panics
    /// If the span is shorter than one block.
    pub fn requests(&self, span_sectors: u64, seed: u64) -> Requests {
        Requests::new(self, span_sectors, seed)
    }
}
