//! A recording as extraction sees it: its rows, file positions, read streams, page reuse.

use std::ops::Deref;

use tierwise_recording::Recording;

use crate::index::address_space::AddressSpace;
use crate::index::rows::Rows;
use crate::page_cache::cache_size::PageCache;
use crate::page_cache::read_streams::ReadStreams;
use crate::page_cache::reuse_distances::ReuseDistances;

/// An indexed recording; it gives access to all of its [`Rows`].
pub(crate) struct View<'a> {
    rows: Rows<'a>,
    pub(crate) address_space: AddressSpace,
    pub(crate) streams: ReadStreams,
    pub(crate) reuse_distances: ReuseDistances,
    /// The page cache as the recording shows it.
    pub(crate) page_cache: PageCache,
}

impl<'a> View<'a> {
    pub(crate) fn new(recording: &'a Recording) -> Self {
        let rows = Rows::new(recording);
        let address_space = AddressSpace::new(&rows);
        let streams = ReadStreams::new(&rows);
        let (reuse_distances, page_cache) = ReuseDistances::new(&rows, &address_space);
        Self {
            rows,
            address_space,
            streams,
            reuse_distances,
            page_cache,
        }
    }
}

impl<'a> Deref for View<'a> {
    type Target = Rows<'a>;

    fn deref(&self) -> &Rows<'a> {
        &self.rows
    }
}
