//! What the kernel tells of the host: processes, mounts, block devices, files, sockets.

pub mod block_layer;
pub mod control_groups;
pub mod devices;
pub mod directory;
pub mod files;
pub mod machine;
pub mod paths;
pub mod processes;
pub mod sockets;

#[cfg(test)]
mod tests;
