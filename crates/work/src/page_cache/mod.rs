//! What the page cache held, which reads another size of it would answer, and which pages were dirty.
//!
//! Nothing here knows of turns or the log's flushes.

pub(crate) mod cache_size;
pub(crate) mod dirty_pages;
pub(crate) mod page_accesses;
pub(crate) mod read_streams;
pub(crate) mod reuse;
pub(crate) mod reuse_distances;
pub(crate) mod unseen_reads;
