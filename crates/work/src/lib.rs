//! What a recording asks of the machine, free of the times its devices took.

mod model;
mod step;

pub use model::{
    CpuCost, Grouping, HotLock, LogRules, Observed, Pace, RecordedDevice, Session, SyncScript,
    Turn, Work,
};
pub use step::{Away, Step};
