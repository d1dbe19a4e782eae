//! The page cache: its contents, the reads that another size would answer, and its dirty pages.
//!
//! Nothing here depends on turns or the log's flushes.

pub(crate) mod cache_size;
pub(crate) mod dirty_pages;
pub(crate) mod read_cpu;
pub(crate) mod reuse_distances;
mod reuse_observer;
