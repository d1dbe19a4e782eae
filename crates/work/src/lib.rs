//! Converts a recording into work: what the run requires of a machine, independent of its devices' times.

mod address_space;
mod breakdown;
pub mod constants;
mod emit;
mod engines;
mod extract;
mod log;
mod model;
mod page_cache;
mod rows;
mod storage;
mod timeline;
mod transactions;
mod view;

pub use breakdown::{Breakdown, ClassTime, FileTraffic, Requests, RoleTraffic, Slice, breakdown};
pub(crate) use model::Place;
pub use model::mechanism::{Disabled, Mechanism};
pub use model::work::{
    CommitDelay, EmulatedPath, Grouping, HotLock, LogRules, Observed, Pace, PageCache, ReadCpu,
    RecordedDevice, RecordedRequest, Session, SyncRequests, TimeCategory, Turn, UnassignedFile,
    Work,
};
pub use model::{Delay, Step};
pub use model::{ReadReuse, Reuse, ReuseCurve, Unobserved};
pub use tierwise_recording::UserError;
pub use timeline::Coldness;
pub use transactions::sessions::STEADY_TRANSACTIONS;
