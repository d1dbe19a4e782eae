//! Devices, their requests' processor cost, the file system's journal, and the device requests of syncs.
//!
//! Nothing here depends on a file's purpose beyond its role.

pub(crate) mod devices;
pub(crate) mod journal;
pub(crate) mod request_cost;
pub(crate) mod request_path;
pub(crate) mod rules;
pub(crate) mod storage_cost;
pub(crate) mod sync_scripts;
pub(crate) mod syncs;
