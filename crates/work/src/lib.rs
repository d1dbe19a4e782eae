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
mod recording_rows;
mod recording_view;
mod storage;
mod timeline;
mod transactions;

pub use breakdown::{
    ClassCategoryTime, DeviceRequests, FileTraffic, RoleTraffic, ThreadClassTime, TimeBreakdown,
    time_breakdown,
};
pub(crate) use model::SectorRange;
pub use model::mechanism::{DisabledMechanisms, Mechanism};
pub use model::work::{
    CommitDelay, CommitGrouping, EmulatedPath, HotLock, LogRules, ObservedFigures, PageCache,
    ReadCpu, RecordedDevice, RecordedRequest, Session, SyncRequests, TimeCategory, Turn, TurnPace,
    UnassignedFile, Work,
};
pub use model::{Delay, Step};
pub use model::{ReadReuse, ReuseCurve, ReuseDistanceClass, UnobservedReads};
pub use tierwise_recording::UserError;
pub use timeline::ColdCoreCost;
pub use transactions::sessions::STEADY_TRANSACTIONS;
