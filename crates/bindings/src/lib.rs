//! `tierwise._core`: glue between the Rust crates and Python, one file per type and no logic.

mod capture;
mod confine;
mod convert;
mod disk;
mod interrupt;
mod load;
mod probe;
mod profile;
mod python_driver;
mod record;
mod replay;
mod request_counter;
mod sqlite;
mod tpch;

use pyo3::prelude::*;

/// Version of the compiled module; equals that of the Python package.
#[pymodule]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::capture::{
        PyExtents, client_kind, clients_seen, describe_machine, devices_of, engine_of_processes,
        first_processes, layers_under, path_within, process_root, require_first,
        require_visible_files, server_of, server_warnings, servers_listed, servers_of, settings_of,
        socket_peers,
    };

    /// Said of a server that is a standby.
    #[pymodule_export]
    const STANDBY: &str = tierwise_recorder::STANDBY;

    #[pymodule_export]
    use super::confine::confine;

    #[pymodule_export]
    use super::disk::{block_devices, delete_block_devices, serve_disk};

    #[pymodule_export]
    use super::load::{PyClients, load_tables, split_statements, statement_parameters};

    #[pymodule_export]
    use super::probe::{ProbeTarget, probe_engine};

    #[pymodule_export]
    use super::profile::{
        PyProfile, import_drive, parse_profile, profile_keys, simulate_device, summarize_devices,
    };

    #[pymodule_export]
    use super::record::{
        PyRecorder, PyRules, default_burst_s, default_duty, recording_impossible, require_schedule,
    };

    #[pymodule_export]
    use super::replay::{
        PyReplay, predict_together, profile_recording, read_recording, redact_recording,
    };

    #[pymodule_export]
    use super::request_counter::PyRequestCounter;

    #[pymodule_export]
    use super::sqlite::{PySqliteDatabase, sqlite_version};

    #[pymodule_export]
    use super::tpch::{release_tpch_text, tpch_columns, tpch_refresh_keys, tpch_rows, write_tpch};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        #[cfg(feature = "sensitivity")]
        scale_constant();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

/// Scales the constant that the environment names, as `NAME=2`: for benchmarks/sensitivity.py.
#[cfg(feature = "sensitivity")]
fn scale_constant() {
    let text = std::env::var("TIERWISE_SCALED_CONSTANT").unwrap_or_default();
    let scaled = text.split_once('=');
    if let Some((name, Ok(factor))) = scaled.map(|(name, factor)| (name, factor.parse())) {
        tierwise_work::constants::scale(name, factor);
    }
}
