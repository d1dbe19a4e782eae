//! The live emulated block device, served at the pace of a model from `tierwise-device`.
//!
//! One server serves one device. It is cut into partitions. Each has its own counters, and all share one model:
//! one head, one queue and one cache. A partition is a real block device, on which any file system and any
//! database runs: one of the server itself (ublk), or a loop device on a file that the server shows (FUSE).
//!
//! Time is that of the monotonic clock. One thread takes requests from the kernel, hands each to the
//! model at once, and answers it at the time that the model computes. Others pass commands to it, and see
//! that it is on time.

mod clock;
mod config;
mod control;
mod event_loop;
mod pacer;
mod priority;
mod server;
mod stats;
mod store;
mod transport;
mod undo_log;

pub use config::DiskError;
pub use config::{PartitionConfig, ServerConfig, StartState};
pub use pacer::{Arrival, Done, Pacer, Served};
pub use server::serve;
pub use stats::{DeviceStats, PartitionStats};
pub use store::{Effect, VolatileStore, WriteBack, WriteCache};
pub use store::{MemoryStore, Store};
pub use transport::TransportKind;
pub use transport::ublk_control::{delete_devices, devices};
pub use undo_log::CutReport;
