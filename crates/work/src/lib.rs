//! What a recording asks of the machine, free of the times its devices took.

mod background;
mod breakdown;
mod checkpoints;
mod client;
mod clock;
mod coldness;
mod commits;
mod context;
mod core_events;
mod cut;
mod database_lock;
mod devices;
mod dirtied;
mod emit;
mod error;
mod extents;
mod extract;
mod flush_cpu;
mod flushes;
mod lent;
mod limits;
mod locks;
#[cfg(test)]
mod made_state;
mod median;
mod member;
mod misses;
mod model;
mod observed;
mod page_cache;
mod pages;
mod part;
mod peers;
mod picks;
mod pieces;
mod request_cost;
mod reuse;
mod rules;
mod scripts;
mod shape;
mod share;
mod slots;
mod space;
mod step;
mod storage_cost;
mod streams;
mod stretch;
mod switches;
mod syncs;
mod unseen;
mod uses;
mod view;
mod wait;
mod wakes;
mod wal;
mod wal_growth;
mod wal_pages;
mod writer;

pub use breakdown::{Breakdown, ClassTime, FileTraffic, Requests, RoleTraffic, Slice, breakdown};
pub use coldness::{Coldness, CpuCost};
pub use error::WorkError;
pub use model::{
    CheckpointRules, Grouping, HotLock, LogRules, Observed, Pace, Partition, RecordedDevice,
    Session, SyncScript, Turn, Work,
};
pub use page_cache::PageCache;
pub use part::Part;
pub use picks::PickRules;
pub use request_cost::RequestCost;
pub use reuse::Reuse;
pub use step::{Away, Step};
pub use storage_cost::{PATH_NS, StorageCost, spin_ns};
pub use wakes::WakeRules;
