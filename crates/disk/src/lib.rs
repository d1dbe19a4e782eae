//! The live emulated block device: FUSE files, served at the pace of a model from `tierwise-device`.
//!
//! One server serves one device. Its files are the partitions of that device: each has its own counters,
//! and all share one model, that is one head, one queue and one cache. A loop device on each file gives a
//! real block device on which any file system and any database runs.
//!
//! Time is that of the monotonic clock. Threads that read from the kernel hand each request to the model at
//! once and never wait; one real-time thread answers requests at the moment that the model says.

mod clock;
mod config;
mod control;
mod error;
mod files;
mod monitor;
mod pacer;
mod privilege;
mod reply;
mod server;
mod service;
mod stats;
mod store;

pub use config::{PartitionConfig, ServerConfig};
pub use error::DiskError;
pub use pacer::{Arrival, Done, Pacer, Served};
pub use server::serve;
pub use stats::{DeviceStats, PartitionStats};
pub use store::{MemoryStore, Store};
