//! Access patterns by name, for the simulator and for the probe of a real device.
//!
//! A [`Pattern`] is data; [`Pattern::requests`] is its endless stream of requests, the same for the same seed.

use std::fmt;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tierwise_device::{Op, Request, SECTOR_BYTES};

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
    pub fn requests(&self, span_sectors: u64, seed: u64) -> PatternRequests {
        PatternRequests::new(self, span_sectors, seed)
    }
}

// The requests of a pattern, one after another.

/// The endless stream of a pattern's requests; allocates nothing.
#[derive(Clone, Debug)]
pub struct PatternRequests {
    pattern: Pattern,
    random: Xoshiro256PlusPlus,
    blocks: u64,
    next_block: u64,
    writes_since_flush: u32,
}

impl PatternRequests {
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

impl Iterator for PatternRequests {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let flush_every = self.pattern.flush_every;
        if flush_every > 0 && self.writes_since_flush == flush_every {
            self.writes_since_flush = 0;
            return Some(Request::FLUSH);
        }
        let op = self.op();
        self.writes_since_flush += u32::from(op == Op::Write);
        let sectors = self.pattern.block_sectors();
        Some(Request::new(op, self.block() * u64::from(sectors), sectors))
    }
}

// Names of patterns, as fio's users write them: `randread-4k`, `log-append-8k`, `mixed70-4k-qd32`.

const ALLOWED: &str = "give randread, randwrite, seqread, seqwrite, log-append or mixedNN (NN % reads, random), then \
    -SIZE (512b, 4k, 1m), then -qdN for N outstanding at a time if not 1, as in randread-4k-qd32; \
    or a line of CrystalDiskMark, as in rnd4k-q32t1-read";

const KIB: u32 = 1 << 10;
const MIB: u32 = 1 << 20;
const BLOCK_BYTES_MAX: u32 = 64 * MIB;
const SECTOR: u32 = SECTOR_BYTES as u32;
const DEPTH_MAX: u32 = 65_536;

/// A name that stands for no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PatternError {
    /// What is wrong, with the name.
    pub message: String,
    /// What is allowed.
    pub fix: &'static str,
}

impl Pattern {
    /// Reads a name such as `randread-4k`, `seqwrite-128k-qd8`, `log-append-8k`, `mixed70-4k` or one of
    /// [`CRYSTALDISKMARK`].
    ///
    /// # Errors
    /// A name that is not of that form; the fix says what is allowed.
    pub fn parse(name: &str) -> Result<Self, PatternError> {
        let lower = name.to_ascii_lowercase();
        if let Some(line) = CRYSTALDISKMARK.iter().find(|line| line.name == lower) {
            return Ok(line.pattern);
        }
        let wrong = |what: &str| PatternError {
            message: format!("pattern {name:?} {what}"),
            fix: ALLOWED,
        };
        let (rest, depth) = match lower.rsplit_once("-qd") {
            Some((rest, depth)) => (
                rest,
                parse_depth(depth).ok_or_else(|| wrong("has no valid depth"))?,
            ),
            None => (lower.as_str(), 1),
        };
        let (kind, size) = rest.rsplit_once('-').ok_or_else(|| wrong("is not known"))?;
        let block = parse_size(size).ok_or_else(|| wrong("has no valid size"))?;
        let pattern = pattern_of_kind(kind, block).ok_or_else(|| wrong("is not known"))?;
        Ok(pattern.with_depth(depth))
    }
}

fn pattern_of_kind(kind: &str, block_bytes: u32) -> Option<Pattern> {
    Some(match kind {
        "randread" => Pattern::read(true, block_bytes),
        "randwrite" => Pattern::write(true, block_bytes),
        "seqread" => Pattern::read(false, block_bytes),
        "seqwrite" => Pattern::write(false, block_bytes),
        "log-append" => Pattern {
            flush_every: 1,
            ..Pattern::write(false, block_bytes)
        },
        _ => {
            let percent: u32 = kind
                .strip_prefix("mixed")?
                .parse()
                .ok()
                .filter(|&percent| percent <= 100)?;
            Pattern {
                read_share: f64::from(percent) / 100.0,
                ..Pattern::read(true, block_bytes)
            }
        }
    })
}

fn parse_depth(text: &str) -> Option<u32> {
    text.parse()
        .ok()
        .filter(|depth| (1..=DEPTH_MAX).contains(depth))
}

fn parse_size(text: &str) -> Option<u32> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'b' => (text.strip_suffix('b')?, 1),
        b'k' => (text.strip_suffix('k')?, KIB),
        b'm' => (text.strip_suffix('m')?, MIB),
        _ => return None,
    };
    let bytes = digits.parse::<u32>().ok()?.checked_mul(unit)?;
    (bytes > 0 && bytes <= BLOCK_BYTES_MAX && bytes % SECTOR == 0).then_some(bytes)
}

/// The name that [`Pattern::parse`] reads. It omits the time between requests, and flushes other than after
/// each write of a sequence.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.random, self.read_share) {
            (false, 0.0) if self.flush_every > 0 => f.write_str("log-append")?,
            (random, 0.0) => f.write_str(if random { "randwrite" } else { "seqwrite" })?,
            (random, 1.0) => f.write_str(if random { "randread" } else { "seqread" })?,
            (_, share) => write!(f, "mixed{:.0}", share * 100.0)?,
        }
        match self.block_bytes {
            bytes if bytes % MIB == 0 => write!(f, "-{}m", bytes / MIB)?,
            bytes if bytes % KIB == 0 => write!(f, "-{}k", bytes / KIB)?,
            bytes => write!(f, "-{bytes}b")?,
        }
        if self.depth > 1 {
            write!(f, "-qd{}", self.depth)?;
        }
        Ok(())
    }
}

// Sets of patterns that other benchmarks defined.

const FOUR_KIB: u32 = 4096;

/// One figure of a benchmark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BenchmarkFigure {
    /// As the benchmark prints it.
    pub title: &'static str,
    /// The name that [`Pattern::parse`] accepts.
    pub name: &'static str,
    /// What it measures.
    pub pattern: Pattern,
}

/// The four lines of CrystalDiskMark 8, read then write: sequential 1 MiB at depth 8 and 1, random 4 KiB at
/// depth 32 and 1, each from one thread.
pub const CRYSTALDISKMARK: [BenchmarkFigure; 8] = [
    benchmark_figure(
        "SEQ1M Q8T1",
        "seq1m-q8t1-read",
        Pattern::read(false, MIB).with_depth(8),
    ),
    benchmark_figure("SEQ1M Q1T1", "seq1m-q1t1-read", Pattern::read(false, MIB)),
    benchmark_figure(
        "RND4K Q32T1",
        "rnd4k-q32t1-read",
        Pattern::read(true, FOUR_KIB).with_depth(32),
    ),
    benchmark_figure(
        "RND4K Q1T1",
        "rnd4k-q1t1-read",
        Pattern::read(true, FOUR_KIB),
    ),
    benchmark_figure(
        "SEQ1M Q8T1",
        "seq1m-q8t1-write",
        Pattern::write(false, MIB).with_depth(8),
    ),
    benchmark_figure("SEQ1M Q1T1", "seq1m-q1t1-write", Pattern::write(false, MIB)),
    benchmark_figure(
        "RND4K Q32T1",
        "rnd4k-q32t1-write",
        Pattern::write(true, FOUR_KIB).with_depth(32),
    ),
    benchmark_figure(
        "RND4K Q1T1",
        "rnd4k-q1t1-write",
        Pattern::write(true, FOUR_KIB),
    ),
];

const fn benchmark_figure(
    title: &'static str,
    name: &'static str,
    pattern: Pattern,
) -> BenchmarkFigure {
    BenchmarkFigure {
        title,
        name,
        pattern,
    }
}
