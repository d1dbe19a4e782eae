//! Records a running database: programs in the kernel make the tables of a recording, and the host tells the facts of the
//! database's processes, files, devices and clients.
//!
//! `tracer` gives events, `timeline` makes rows of them; `host` and `database` read `/proc`, `/sys` and the file systems;
//! a [`Session`] joins them. [`record`] takes one recording by a schedule, as the static program `tierwise-record` does;
//! it asks the database nothing.

/// The recorded database: which server it is, the rules of its engine, its settings, its clients.
mod database {
    pub mod clients;
    pub mod rules;
    pub mod servers;
    pub mod settings;
}
mod decoding;
mod event;
mod foreign_cpu;
mod host;
mod order;
mod output;
mod rates;
mod request_counter;
mod schedule;
mod session;
#[cfg(test)]
#[path = "tests/system_calls.rs"]
mod system_calls;
pub mod timeline;
pub mod tracer;
mod window;

pub use database::clients::{clients_of, kind_of_name, merge, servers_of_now};
pub use database::rules::role_by_path;
pub use database::servers::{Server, Wanted, listed, require_first, root_of};
pub use database::settings::{roles_of, settings_of};
pub use host::block_layer::{BlockLayer, EmulatedPartition};
pub use host::devices::Devices;
pub use host::files::{KnownExtents, RoleOf, role_of_content};
pub use host::machine::memory_limit_bytes;
pub use host::paths::within;
pub use host::processes::first_processes;
pub use host::sockets::{Peer, Sockets};
pub use order::{Order, record};
pub use request_counter::{OwnedRequests, RequestCounter};
pub use schedule::{
    DEFAULT_LIMIT_BYTES, DEFAULT_S, Schedule, default_burst_s, default_duty, megabytes,
};
pub use session::{Session, Subject};
pub use tierwise_input::UserError;
pub use tracer::{Places, impossible};
pub use window::Control;
