//! Records a running database without Python: finds its processes, tells the facts of its files and devices, takes
//! bursts by a schedule, and writes the recording.
//!
//! The static program `tierwise-record` is a command line for this crate. It asks the database nothing. The recorder in
//! Python uses the functions that are exported one by one.

mod about;
mod block_layer;
mod client_names;
mod clients;
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
mod plain_files;
mod processes;
mod rates;
mod rules;
mod schedule;
mod scheduled;
mod servers;
mod session;
mod settings;
mod sockets;
mod sysfs;
mod target;
mod tcp_sockets;
#[cfg(test)]
mod tests;
mod tracing;
mod unix_sockets;

pub use about::warnings_of;
pub use block_layer::{BlockLayer, EmulatedPartition};
pub use client_names::kind_of_name;
pub use clients::{ServersOf, clients_of, merge, servers_of_now};
pub use devices::{BlockDevice, Devices};
pub use disk_space::{DEFAULT_LIMIT_BYTES, megabytes};
pub use error::RecordError;
pub use extents::{KnownExtents, extents_of};
pub use files::{RoleOf, role_of_content};
pub use machine::memory_limit_bytes;
pub use paths::within;
pub use rules::role_by_path;
pub use schedule::Schedule;
pub use scheduled::{Order, record};
pub use servers::Server;
pub use session::{Places, Session, Subject};
pub use settings::{roles_of, settings_of};
pub use sockets::{Peer, Sockets};
pub use target::{Target, Wanted, listed};
