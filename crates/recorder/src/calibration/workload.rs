//! A fixed workload that needs its caches: a chain of pointers through memory, and code that differs from step to step.

use std::hint::black_box;

use tierwise_recording::CacheWarmup;

/// Bytes of data, within a second-level cache of today's servers (512 KiB to 2 MiB a core).
pub(super) const DATA_BYTES: usize = 512 << 10;
const LINE_BYTES: usize = 64;
/// Lines of memory between two blocks of code.
const LINES_PER_BLOCK: usize = 32;
/// Size of one block of code, as compiled for x86-64: 16 rounds of about 20 bytes.
const BLOCK_BYTES: usize = 320;

type Block = fn(u64) -> u64;

/// A line of memory that names the next.
#[repr(align(64))]
#[derive(Clone, Copy, Default)]
struct Line {
    next: u32,
}

/// The workload, and where in it a run is.
pub(super) struct Workload {
    lines: Vec<Line>,
    at: u32,
    value: u64,
}

impl Workload {
    /// With its own data.
    pub(super) fn new(data_bytes: usize) -> Self {
        let count = data_bytes / LINE_BYTES;
        let mut order: Vec<u32> = (0..count as u32).collect();
        let mut random = 0x9E37_79B9_7F4A_7C15_u64;
        // One cycle through all lines (Sattolo's shuffle), which no prefetcher foresees.
        for last in (1..count).rev() {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            order.swap(last, (random % last as u64) as usize);
        }
        let mut lines = vec![Line::default(); count];
        for (line, next) in lines.iter_mut().zip(order) {
            line.next = next;
        }
        Self {
            lines,
            at: 0,
            value: 1,
        }
    }

    /// One pass through all of it.
    pub(super) fn run(&mut self) {
        for block in 0..self.lines.len() / LINES_PER_BLOCK {
            self.step(block);
        }
    }

    /// One part of it, whichever number that has.
    pub(super) fn step(&mut self, block: usize) {
        for _ in 0..LINES_PER_BLOCK {
            self.at = self.lines[self.at as usize].next;
        }
        let block = BLOCKS[block / 16 % 16][block % 16];
        self.value = block(self.value ^ u64::from(black_box(self.at)));
    }

    /// Description of the workload, without any time.
    pub(super) fn described() -> CacheWarmup {
        CacheWarmup {
            working_set_bytes: DATA_BYTES as u64,
            code_bytes: (BLOCKS.len() * BLOCKS[0].len() * BLOCK_BYTES) as u64,
            ..CacheWarmup::default()
        }
    }
}

/// Code unique to the block, by its constants.
#[inline(never)]
fn block<const N: u64>(mut value: u64) -> u64 {
    macro_rules! rounds {
        ($($round:literal)*) => {
            $(
                value ^= const { (N + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15 + 2 * $round) };
                value = value.wrapping_mul(0xD6E8_FEB8_6659_FD93).rotate_left(const { ((N + $round) % 63 + 1) as u32 });
            )*
        };
    }
    rounds!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    value
}

macro_rules! row {
    ($row:literal: $($column:literal)*) => { [$(block::<{ $row * 16 + $column }> as Block),*] };
}

macro_rules! rows {
    ($($row:literal)*) => { [$(row!($row: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)),*] };
}

static BLOCKS: [[Block; 16]; 16] = rows!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_visits_every_line_once() {
        let mut work = Workload::new(DATA_BYTES);
        let mut seen = vec![false; work.lines.len()];
        let mut at = 0;
        while !std::mem::replace(&mut seen[at as usize], true) {
            at = work.lines[at as usize].next;
        }
        assert!(seen.iter().all(|&seen| seen));
        work.run();
        assert_eq!(work.at, 0);
    }
}
