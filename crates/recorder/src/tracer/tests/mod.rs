//! The tracer on pages written here, and on a real kernel where that is possible.

mod decoding;
mod live;
mod opens;
mod page_builder;
mod pages;
mod replies;
mod traced_calls;
