//! A recording as most of the extraction sees it: its rows, the flushes of its log, the positions of its files.

use std::ops::Deref;

use tierwise_recording::Recording;

use crate::address_space::AddressSpace;
use crate::log::LogFlushes;
use crate::recording_rows::RecordingRows;

/// An indexed recording; it gives access to all of its [`RecordingRows`].
pub(crate) struct RecordingView<'a> {
    rows: RecordingRows<'a>,
    pub(crate) flushes: LogFlushes,
    pub(crate) address_space: AddressSpace,
}

impl<'a> RecordingView<'a> {
    pub(crate) fn new(recording: &'a Recording) -> Self {
        let rows = RecordingRows::new(recording);
        Self {
            flushes: LogFlushes::new(&rows),
            address_space: AddressSpace::new(&rows),
            rows,
        }
    }
}

impl<'a> Deref for RecordingView<'a> {
    type Target = RecordingRows<'a>;

    fn deref(&self) -> &RecordingRows<'a> {
        &self.rows
    }
}
