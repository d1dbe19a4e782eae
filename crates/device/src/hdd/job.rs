//! What the mechanism is doing.

use std::ops::Range;

use crate::{Nanos, RequestId};

/// What the mechanism is doing.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) end: Nanos,
    pub(super) work: Work,
    /// The sectors it moves between medium and buffer.
    pub(super) sectors: Range<u64>,
}

/// For whom the mechanism works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// A command from the queue.
    Command,
    /// The write cache.
    WriteBack,
    /// A flush that nothing else may overtake, with the cache written back.
    Flush(RequestId),
}
