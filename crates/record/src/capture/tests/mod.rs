//! Capture on pages written here, and on a real kernel where that is possible.

mod decoding;
#[cfg(target_arch = "x86_64")]
mod live;
mod opens;
mod page_builder;
mod pages;
mod replies;
