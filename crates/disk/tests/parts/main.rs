//! Parts of the live disk that need no FUSE.

mod config;
mod pacer;
mod volatile;
