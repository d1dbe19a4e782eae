//! Converts a recording into work: what the run requires of a machine, independent of its devices' times.

mod ablation;
mod breakdown;
pub mod constants;
mod emit;
mod engines;
mod error;
mod extract;
mod index;
mod limits;
mod log;
mod model;
mod page_cache;
mod statistics;
mod storage;
#[cfg(test)]
mod test_states;
mod timeline;
mod transactions;
mod unassigned;

pub use breakdown::{Breakdown, ClassTime, FileTraffic, Requests, RoleTraffic, Slice, breakdown};
pub use error::WorkError;
pub use model::log_rules::{CommitDelay, LogRules};
pub use model::mechanism::{Disabled, Mechanism};
pub use model::step::{Delay, Step};
pub use model::unassigned::UnassignedFile;
pub use model::work::{
    CheckpointRules, Grouping, HotLock, Observed, Pace, Partition, RecordedDevice, RecordedRequest,
    Session, SyncScript, Turn, Work,
};
pub use page_cache::cache_size::PageCache;
pub use page_cache::reuse::Reuse;
pub use timeline::idle_cores::cold_factor;
pub use timeline::time_category::TimeCategory;
pub use transactions::active_span::STEADY_TRANSACTIONS;
