//! The live emulated block device, served at the pace of a model from `tierwise-device`.
//!
//! One server serves one device. It is cut into partitions. Each has its own counters, and all share one model:
//! one head, one queue and one cache. A partition is a real block device, on which any file system and any
//! database runs: one of the server itself (ublk), or a loop device on a file that the server shows (FUSE).
//!
//! Time is that of the monotonic clock. One thread takes requests from the kernel, hands each to the
//! model at once, and answers it at the time that the model computes. Others pass commands to it, and see
//! that it is on time.

mod byte_store;
mod clock;
mod control_socket;
mod device_counters;
mod disk_server;
mod event_loop;
mod pacer;
mod priority;
mod server_config;
mod transport;
mod undo_log;

pub use byte_store::{ByteStore, MemoryStore};
pub use byte_store::{CompletionEffect, VolatileStore, WriteBackPolicy, WriteCacheMode};
pub use device_counters::{DeviceStats, PartitionStats};
pub use disk_server::serve_device;
pub use pacer::{ArrivedRequest, CountedRequest, DueAnswer, Pacer};
pub use server_config::DiskError;
pub use server_config::{PartitionConfig, ServerConfig, StartState};
pub use transport::TransportKind;
pub use transport::ublk_control::{delete_disk_block_devices, disk_block_devices};
pub use undo_log::CutReport;
