//! Flushes: those that wait for the write cache, and the commands that wait for a flush.
//!
//! A queued flush (SCSI) ends when every write reported before it is on the medium, and other commands go on
//! meanwhile. A flush that cannot be queued (ATA) comes after all commands before it and holds back all behind it.

use std::collections::VecDeque;

use crate::due::RESERVED;
use crate::{Request, RequestId};

/// A flush that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) id: RequestId,
    /// Number of the last write reported before it.
    pub(super) last_write: u64,
}

/// Flushes in order of arrival.
#[derive(Debug)]
pub(super) struct Flushes {
    pub(super) drains: bool,
    pub(super) pending: VecDeque<Pending>,
    /// Commands that a flush holds back.
    pub(super) held: VecDeque<(RequestId, Request)>,
}

impl Flushes {
    pub(super) fn new(drains: bool) -> Self {
        Self {
            drains,
            pending: VecDeque::with_capacity(RESERVED),
            held: VecDeque::with_capacity(RESERVED),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether commands that come now must wait for a flush.
    pub(super) fn holds_back(&self) -> bool {
        self.drains && !self.is_empty()
    }
}
