//! Devices, what requests to them cost the processors, the file system's journal, and what syncs made devices do.
//!
//! Nothing here knows what a file is for beyond its role.

pub(crate) mod devices;
pub(crate) mod journal;
pub(crate) mod request_cost;
pub(crate) mod request_path;
pub(crate) mod rules;
pub(crate) mod storage_cost;
pub(crate) mod sync_scripts;
pub(crate) mod syncs;
