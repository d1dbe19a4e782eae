//! Statistics of recorded values.

/// The median, the upper one for an even number of values; none if there are no values.
pub(crate) fn median(mut times_ns: Vec<u64>) -> Option<u64> {
    times_ns.sort_unstable();
    times_ns.get(times_ns.len() / 2).copied()
}
