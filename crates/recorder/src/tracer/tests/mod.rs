//! The tracer on pages written here, and on a real kernel where that is possible.

mod decoding;
mod live;
mod pages;
