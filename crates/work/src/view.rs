//! A recording as most of the extraction sees it: its rows, the flushes of its log, the positions of its files.

use std::ops::Deref;

use tierwise_recording::Recording;

use crate::address_space::AddressSpace;
use crate::log::LogFlushes;
use crate::rows::Rows;

/// An indexed recording; it gives access to all of its [`Rows`].
pub(crate) struct View<'a> {
    rows: Rows<'a>,
    pub(crate) flushes: LogFlushes,
    pub(crate) address_space: AddressSpace,
}

impl<'a> View<'a> {
    pub(crate) fn new(recording: &'a Recording) -> Self {
        let rows = Rows::new(recording);
        Self {
            flushes: LogFlushes::new(&rows),
            address_space: AddressSpace::new(&rows),
            rows,
        }
    }
}

impl<'a> Deref for View<'a> {
    type Target = Rows<'a>;

    fn deref(&self) -> &Rows<'a> {
        &self.rows
    }
}
