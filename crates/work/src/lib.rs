//! What a recording asks of the machine, free of the times its devices took.

mod model;

pub use model::{
    Away, CpuCost, Grouping, HotLock, LogRules, Observed, Pace, RecordedDevice, Session, Step,
    SyncScript, Turn, Work,
};
