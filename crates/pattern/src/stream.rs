//! The requests of a pattern, one after another.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tierwise_device::{Op, Request};

use crate::Pattern;

const FLUSH: Request = Request {
    op: Op::Flush,
    sector: 0,
    sectors: 0,
    fua: false,
};

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
        Some(Request {
            op,
            sector: self.block() * u64::from(sectors),
            sectors,
            fua: false,
        })
    }
}
