//! `tierwise._core`: glue between the Rust crates and Python, one file per type and no logic.

mod disk;
mod import;
mod interrupt;
mod load;
mod probe;
mod profile;
mod simulate;

use pyo3::prelude::*;

/// Version of the compiled module; equals that of the Python package.
#[pymodule]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::disk::serve_disk;

    #[pymodule_export]
    use super::import::import_drive;

    #[pymodule_export]
    use super::load::{PostgresClients, load_tables, split_statements, statement_parameters};

    #[pymodule_export]
    use super::probe::{ProbeTarget, probe_engine};

    #[pymodule_export]
    use super::profile::{PyProfile, parse_profile};

    #[pymodule_export]
    use super::simulate::{simulate_device, summarize_devices};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
