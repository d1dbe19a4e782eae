//! Sets of patterns that other benchmarks defined.

use crate::Pattern;

const MIB: u32 = 1 << 20;
const FOUR_KIB: u32 = 4096;

/// One figure of a benchmark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// As the benchmark prints it.
    pub title: &'static str,
    /// The name that [`Pattern::parse`] accepts.
    pub name: &'static str,
    /// What it measures.
    pub pattern: Pattern,
}

/// The four lines of CrystalDiskMark 8, read then write: sequential 1 MiB at depth 8 and 1, random 4 KiB at
/// depth 32 and 1, each from one thread.
pub const CRYSTALDISKMARK: [Line; 8] = [
    line(
        "SEQ1M Q8T1",
        "seq1m-q8t1-read",
        Pattern::read(false, MIB).with_depth(8),
    ),
    line("SEQ1M Q1T1", "seq1m-q1t1-read", Pattern::read(false, MIB)),
    line(
        "RND4K Q32T1",
        "rnd4k-q32t1-read",
        Pattern::read(true, FOUR_KIB).with_depth(32),
    ),
    line(
        "RND4K Q1T1",
        "rnd4k-q1t1-read",
        Pattern::read(true, FOUR_KIB),
    ),
    line(
        "SEQ1M Q8T1",
        "seq1m-q8t1-write",
        Pattern::write(false, MIB).with_depth(8),
    ),
    line("SEQ1M Q1T1", "seq1m-q1t1-write", Pattern::write(false, MIB)),
    line(
        "RND4K Q32T1",
        "rnd4k-q32t1-write",
        Pattern::write(true, FOUR_KIB).with_depth(32),
    ),
    line(
        "RND4K Q1T1",
        "rnd4k-q1t1-write",
        Pattern::write(true, FOUR_KIB),
    ),
];

const fn line(title: &'static str, name: &'static str, pattern: Pattern) -> Line {
    Line {
        title,
        name,
        pattern,
    }
}
