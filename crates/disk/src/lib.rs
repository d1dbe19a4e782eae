//! The live emulated block device: FUSE files, served at the pace of a model from `tierwise-device`.
//!
//! One server serves one device. Its files are the partitions of that device. Each has its own counters, and
//! all share one model: one head, one queue and one cache. A loop device on each file gives a real block
//! device on which any file system and any database runs.
//!
//! Time is that of the monotonic clock. Threads that read from the kernel hand each request to the model at
//! once and never wait; one real-time thread answers requests at the times that the model computes.

mod clock;
mod config;
mod control;
mod error;
mod fate;
mod faults;
mod files;
mod filesystem;
mod monitor;
mod pacer;
mod privilege;
mod reply;
mod server;
mod service;
mod slowdown;
mod stats;
mod store;
mod undo_log;
mod volatile;

pub use config::{PartitionConfig, ServerConfig, StartState};
pub use error::DiskError;
pub use pacer::{Arrival, Done, Pacer, Served};
pub use server::serve;
pub use stats::{DeviceStats, PartitionStats};
pub use store::{MemoryStore, Store};
pub use undo_log::CutReport;
pub use volatile::{Effect, VolatileStore, WriteBack, WriteCache};
