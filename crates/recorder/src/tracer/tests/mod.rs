//! The tracer on pages written here, and on a real kernel where that is possible.

mod calls;
mod decoding;
mod live;
mod pages;
