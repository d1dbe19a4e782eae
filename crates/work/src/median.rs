//! The median of what was seen.

/// Of an even number the upper one of the two in the middle; none of nothing.
pub(crate) fn median(mut times_ns: Vec<u64>) -> Option<u64> {
    times_ns.sort_unstable();
    times_ns.get(times_ns.len() / 2).copied()
}
