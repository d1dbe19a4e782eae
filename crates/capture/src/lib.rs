//! Records a running database without Python: finds its processes, tells the facts of its files and devices, takes
//! bursts by a schedule, and writes the recording.
//!
//! The static program `tierwise-record` is a command line for this crate. It asks the database nothing. The recorder in
//! Python uses the functions that are exported one by one.

mod about;
mod block_layer;
mod cpu;
mod decoder;
mod devices;
mod directory;
mod disk_space;
mod error;
mod event_cost;
mod extents;
mod files;
mod ledger;
mod machine;
mod mounts;
mod output;
mod paths;
mod processes;
mod rates;
mod rules;
mod schedule;
mod session;
mod sysfs;
mod target;
mod tracing;

pub use disk_space::{DEFAULT_LIMIT_BYTES, megabytes};
pub use error::RecordError;
pub use event_cost::measure_event_cpu_ns;
pub use extents::extents_of;
pub use machine::memory_limit_bytes;
pub use paths::{tree_bytes, within};
pub use processes::memory_bytes;
pub use rates::RateMeter;
pub use schedule::Schedule;
pub use session::{Order, record};
pub use target::{Target, Wanted};
