//! The time of one thread, each segment of it classified once: on a core, ready, or waiting and for what.
//!
//! Nothing here compares threads or knows of transactions.

pub(crate) mod segments;
pub(crate) mod time_category;
pub(crate) mod time_use;
pub(crate) mod wait;
