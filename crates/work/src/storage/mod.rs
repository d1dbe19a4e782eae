//! Devices, their requests' processor cost, the file system's journal, and the device requests of syncs.
//!
//! Nothing here depends on a file's purpose beyond its role.

pub(crate) mod devices;
pub(crate) mod sync_scripts;
pub(crate) mod syncs;
