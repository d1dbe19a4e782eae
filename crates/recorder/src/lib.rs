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
mod foreign_cpu;
mod host;
mod output;
mod recording_order;
mod recording_rate;
mod recording_window;
mod request_counter;
mod schedule;
mod session;
#[cfg(test)]
#[path = "tests/system_calls.rs"]
mod system_calls;
pub mod timeline;
mod trace_event;
pub mod tracer;

pub use database::clients::{
    client_kind_of_program, client_programs_of_server, connected_servers_now, merge_client_programs,
};
pub use database::rules::parse_role_by_path;
pub use database::servers::{
    DatabaseServer, WantedDatabase, engine_of_processes, process_root, require_first_process,
    require_visible_files, server_list_text,
};
pub use database::settings::{STANDBY, roles_by_settings, server_settings, server_warnings};
pub use host::block_layer::{BlockLayer, EmulatedPartition};
pub use host::devices::DiscoveredDevices;
pub use host::files::{CachedFileExtents, RoleLookup, role_of_content};
pub use host::machine::describe_machine;
pub use host::paths::path_within_root;
pub use host::processes::first_processes;
pub use host::sockets::{ConnectionPeer, SocketTable};
pub use recording_order::{RecordingOrder, record};
pub use recording_window::RecordingControl;
pub use request_counter::{DeviceOwnerRequests, RequestCounter};
pub use schedule::{
    BurstSchedule, DEFAULT_LIMIT_BYTES, DEFAULT_S, default_burst_s, default_burst_share,
    megabytes_text,
};
pub use session::{RecordedDatabase, Session};
pub use tierwise_input::UserError;
pub use tracer::{TracerStorage, why_tracing_impossible};
