//! Devices, and the device requests of syncs.
//!
//! Nothing here depends on a file's purpose beyond its role.

pub(crate) mod syncs;
