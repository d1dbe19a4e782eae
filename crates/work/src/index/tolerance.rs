//! How exactly instants of different tables of a recording agree.

/// A thread goes on within this time after what it waited for.
pub(crate) const WOKEN_NS: u64 = 100_000;
/// A waking is told at most this long before the end of the request that caused it.
pub(crate) const EARLY_NS: u64 = WOKEN_NS / 5;
