//! What the kernel tells of the host: processes, mounts, block devices, files, sockets.

pub mod block_layer;
pub mod cpu;
pub mod devices;
pub mod directory;
pub mod extents;
pub mod files;
pub mod machine;
pub mod mounts;
pub mod paths;
pub mod processes;
pub mod socket_tables;
pub mod sockets;

#[cfg(test)]
mod tests;

pub use block_layer::{BlockLayer, EmulatedPartition};
pub use devices::Devices;
pub use extents::KnownExtents;
pub use files::{RoleOf, role_of_content};
pub use machine::memory_limit_bytes;
pub use paths::within;
pub use processes::first_processes;
pub use sockets::{Peer, Sockets};
