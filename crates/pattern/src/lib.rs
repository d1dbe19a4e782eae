//! Access patterns by name, for the simulator and for the probe of a real device.
//!
//! A [`Pattern`] is data; [`Pattern::requests`] is its endless stream of requests, the same for the same seed.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tierwise_device::{Op, Request, SECTOR_BYTES};

mod name;

pub use name::{CRYSTALDISKMARK, Line, PatternError};

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

// The requests of a pattern, one after another.

const FLUSH: Request = Request::FLUSH;

/// The endless stream of a pattern's requests; allocates nothing.
#[derive(Clone, Debug)]
pub struct Requests {
    pattern: Pattern,
    random: Xoshiro256PlusPlus,
    blocks: u64,
    next_block: u64,
    writes_since_flush: u32,
}

impl Requests {
    pub(crate) fn new(pattern: &Pattern, span_sectors: u64, seed: u64) -> Self {
        let blocks = span_sectors / u64::from(pattern.block_sectors());
        assert!(blocks > 0, "a span shorter than one block");
        Self {
            pattern: *pattern,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            blocks,
            next_block: 0,
            writes_since_flush: 0,
        }
    }

    fn block(&mut self) -> u64 {
        if self.pattern.random {
            return self.random.random_range(0..self.blocks);
        }
        let block = self.next_block;
        self.next_block = if block + 1 == self.blocks {
            0
        } else {
            block + 1
        };
        block
    }

    fn op(&mut self) -> Op {
        let share = self.pattern.read_share;
        let reads = share >= 1.0 || share > 0.0 && self.random.random::<f64>() < share;
        if reads { Op::Read } else { Op::Write }
    }
}

impl Iterator for Requests {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let flush_every = self.pattern.flush_every;
        if flush_every > 0 && self.writes_since_flush == flush_every {
            self.writes_since_flush = 0;
            return Some(FLUSH);
        }
        let op = self.op();
        self.writes_since_flush += u32::from(op == Op::Write);
        let sectors = self.pattern.block_sectors();
        Some(Request::new(op, self.block() * u64::from(sectors), sectors))
    }
}
