//! Recorded work under another placement, on other devices, with more or fewer cores, clients or memory.
//!
//! Waits are recomputed, never replayed: sessions compete for cores, locks, the log and devices on virtual time.

mod background;
mod cache;
mod clients;
mod commit;
mod cores;
mod error;
mod events;
mod files;
mod jobs;
mod layout;
mod locking;
mod locks;
mod log;
mod many;
mod member;
mod memory;
mod observed;
mod op;
mod others;
mod outcome;
mod page_set;
mod placing;
mod processor;
mod program;
mod progress;
mod question;
mod read_ahead;
mod reproduce;
mod run;
mod scenario;
mod script;
mod serving;
mod session;
mod signals;
mod simulation;
mod slot;
mod step;
mod storage;
mod summary;
mod sync;
mod tally;
mod throttle;
mod toll;
mod traffic;
mod write_back;

pub use error::ReplayError;
pub use many::{Answer, replay, replay_all};
pub use memory::Misses;
pub use outcome::{Latency, Outcome, RoleIo};
pub use program::Program;
pub use question::{Length, Live, Place, Question};
pub use reproduce::{Reproduction, Retrace, recorded_mode};
pub use scenario::{LivePath, Mode, Scenario};
pub use summary::{DeviceSummary, LockSummary, ObservedSummary, Summary};
