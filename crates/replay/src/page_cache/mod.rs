//! The operating system's page cache: hits, read-ahead, dirty pages, write-back. Its requests go through `block`.

pub(crate) mod cache_hits;
pub(crate) mod dirty_pages;
pub(crate) mod file_access;
pub(crate) mod flusher;
pub(crate) mod page_set;
pub(crate) mod read_ahead;
pub(crate) mod read_ahead_windows;
pub(crate) mod write_back;
