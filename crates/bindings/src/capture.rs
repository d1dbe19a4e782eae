//! Facts about files, devices and processes, as the recorder finds them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use serde::Serialize;
use tierwise_recorder::{
    BlockLayer, CachedFileExtents, ConnectionPeer, DatabaseServer, DiscoveredDevices,
    EmulatedPartition, SocketTable,
};
use tierwise_recording::{ChainLink, ClientProgram};

use crate::convert::{from_json, tierwise_error_of, to_json};
use crate::record::PyRules;

/// First sector, number of sectors and offset in bytes of each extent of files; one that was not written since it was
/// asked for is not asked again.
#[pyclass(frozen, name = "Extents", module = "tierwise._core")]
#[derive(Default)]
pub struct PyExtents(Mutex<CachedFileExtents>);

#[pymethods]
impl PyExtents {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Of a file; none if it is gone or its file system does not tell.
    fn of(&self, py: Python<'_>, path: PathBuf) -> Vec<(u64, u64, u64)> {
        let extents = py.detach(|| {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            fs::metadata(&path).map(|status| known.of(&path, &status, 0))
        });
        let placed = extents.unwrap_or_default().into_iter();
        placed
            .map(|extent| (extent.sector, extent.sectors, extent.offset_bytes))
            .collect()
    }
}

/// File systems and devices below a path or a block device.
#[derive(Serialize)]
struct Layers {
    /// An overlay, then its upper directory's; empty for a raw device or an unknown file system.
    file_systems: Vec<String>,
    /// Folders in sysfs; several for btrfs, none for memory and network file systems.
    devices: Vec<PathBuf>,
    /// Names of the physical devices.
    disks: Vec<String>,
    /// Each before those below it.
    chain: Vec<ChainLink>,
}

/// What is below a path or a block device, as JSON; empty if it is missing. `emulated` has the partitions of emulated
/// disks, as JSON.
#[pyfunction]
pub fn layers_under(py: Python<'_>, path: PathBuf, emulated: &str) -> PyResult<String> {
    let emulated = partitions(emulated)?;
    let layers = py.detach(|| {
        let layer = BlockLayer::with_emulated(emulated);
        let device = fs::metadata(&path).ok();
        let device = device.filter(|device| device.file_type().is_block_device());
        let base = match device {
            Some(device) => layer.under(device.rdev(), None),
            None => layer.under_path(&path),
        };
        let disks = base.devices.iter().flat_map(|device| layer.disks(device));
        let mut disks: Vec<_> = disks.collect();
        disks.sort_unstable();
        disks.dedup();
        Layers {
            disks,
            chain: layer.chain(&base),
            file_systems: base.file_systems,
            devices: base.devices,
        }
    });
    to_json(&layers)
}

/// A block device and its sectors on the devices that block events name.
#[derive(Serialize)]
struct DeviceText<'a> {
    name: &'a str,
    /// Kind of the device that takes its requests, if the kernel does not trace them.
    untraced: Option<&'a str>,
    /// Whether its file system reports the location of a file on it.
    tells_places: bool,
    /// Number, first sector, sectors, and offset of the range on this device, in sectors.
    stretches: Vec<(u32, u64, u64, u64)>,
}

/// The devices that hold these directories, and for each directory the index of its own or none, as JSON.
#[pyfunction]
pub fn devices_of(py: Python<'_>, places: Vec<PathBuf>, emulated: &str) -> PyResult<String> {
    let emulated = partitions(emulated)?;
    let (devices, indices) = py.detach(|| {
        let mut devices = DiscoveredDevices::new(None, BlockLayer::with_emulated(emulated));
        let index =
            |place: &PathBuf| devices.index_of(fs::metadata(place).ok()?.dev(), place, None);
        let indices: Vec<Option<u32>> = places.iter().map(index).collect();
        (devices, indices)
    });
    let described = devices.known.iter().map(|device| {
        let stretches = device.stretches().iter();
        let stretch = stretches.map(|stretch| {
            (
                stretch.number,
                stretch.first_sector,
                stretch.sectors,
                stretch.offset_sectors,
            )
        });
        DeviceText {
            name: &device.described().name,
            untraced: device.untraced(),
            tells_places: device.tells_places(),
            stretches: stretch.collect(),
        }
    });
    to_json(&(described.collect::<Vec<_>>(), indices))
}

/// Processes with one of these names whose parents have none of them.
#[pyfunction]
pub fn first_processes(py: Python<'_>, programs: Vec<String>) -> Vec<i32> {
    py.detach(|| tierwise_recorder::first_processes(&programs))
}

/// Refuses a thread, and a process that a server has started.
#[pyfunction]
pub fn require_first(py: Python<'_>, pid: i32, program: &str) -> PyResult<()> {
    let refused = py.detach(|| tierwise_recorder::require_first_process(pid, program));
    refused.map_err(|error| tierwise_error_of(py, &error))
}

/// Refuses a process to whose files the kernel's paths do not lead.
#[pyfunction]
pub fn require_visible_files(
    py: Python<'_>,
    pid: i32,
    rules: &PyRules,
    root: PathBuf,
) -> PyResult<()> {
    let refused = py.detach(|| tierwise_recorder::require_visible_files(pid, &rules.0, &root));
    refused.map_err(|error| tierwise_error_of(py, &error))
}

/// Root of a process's files as seen by this process.
#[pyfunction]
pub fn process_root(py: Python<'_>, pid: i32) -> PathBuf {
    py.detach(|| tierwise_recorder::process_root(pid))
}

/// A path as a process with that root has it.
#[pyfunction]
pub fn path_within(py: Python<'_>, root: PathBuf, path: PathBuf) -> PathBuf {
    py.detach(|| tierwise_recorder::path_within_root(&root, &path))
}

/// The machine that a process runs on, as JSON, with the cores and the memory that it may use.
#[pyfunction]
pub fn describe_machine(py: Python<'_>, pid: i32) -> PyResult<String> {
    to_json(&py.detach(|| tierwise_recorder::describe_machine(pid)))
}

fn partitions(emulated: &str) -> PyResult<Vec<EmulatedPartition>> {
    from_json(emulated)
}

// What the host tells about a server and its clients, for the recorder in Python.

/// A server in a form for JSON.
#[derive(Serialize)]
struct ServerText {
    pid: i32,
    version: Option<String>,
    ports: Vec<u16>,
    sockets: Vec<String>,
    data_directory: Option<PathBuf>,
    in_container: bool,
    /// All of it in words.
    described: String,
}

/// Name of the engine of running processes.
#[pyfunction]
pub fn engine_of_processes(pids: Vec<i32>, rules: &PyRules) -> String {
    tierwise_recorder::engine_of_processes(&pids, &rules.0)
}

/// The server with a pid, as JSON.
#[pyfunction]
pub fn server_of(py: Python<'_>, pid: i32, rules: &PyRules, root: PathBuf) -> PyResult<String> {
    let server = py.detach(|| DatabaseServer::of(pid, &rules.0, &root, &SocketTable::now()));
    to_json(&ServerText {
        described: server.to_string(),
        pid: server.pid,
        version: server.version,
        ports: server.ports,
        sockets: server.sockets,
        data_directory: server.data_directory,
        in_container: server.in_container,
    })
}

/// Servers in words, with all that tells them apart.
#[pyfunction]
pub fn servers_listed(py: Python<'_>, pids: Vec<i32>) -> String {
    py.detach(|| tierwise_recorder::server_list_text(&pids))
}

/// Settings of a server from its command line and its files.
#[pyfunction]
pub fn settings_of(
    py: Python<'_>,
    pid: i32,
    rules: &PyRules,
    root: PathBuf,
) -> BTreeMap<String, String> {
    py.detach(|| tierwise_recorder::server_settings(pid, &rules.0, &root))
}

/// What its files say of a server that answers leave out.
#[pyfunction]
pub fn server_warnings(py: Python<'_>, pid: i32, rules: &PyRules, root: PathBuf) -> Vec<String> {
    py.detach(|| tierwise_recorder::server_warnings(pid, &rules.0, &root))
}

/// What a program is by its name; none if the name says nothing.
#[pyfunction]
pub fn client_kind(name: &str) -> PyResult<Option<String>> {
    let kind = tierwise_recorder::client_kind_of_program(name);
    let text = kind.map(|kind| to_json(&kind)).transpose()?;
    Ok(text.map(|text| text.trim_matches('"').to_owned()))
}

/// The programs that hold sessions of some processes now, added to those of earlier looks; both as JSON.
#[pyfunction]
pub fn clients_seen(py: Python<'_>, known: &str, pids: Vec<i32>) -> PyResult<String> {
    let mut known: Vec<ClientProgram> = from_json(known)?;
    let seen =
        py.detach(|| tierwise_recorder::client_programs_of_server(&pids, &SocketTable::now()));
    tierwise_recorder::merge_client_programs(&mut known, seen);
    to_json(&known)
}

/// First processes of the servers on this host that some processes are connected to, and whether there is one elsewhere.
#[pyfunction]
pub fn servers_of(py: Python<'_>, pids: Vec<i32>) -> (Vec<i32>, bool) {
    let found = py.detach(|| tierwise_recorder::connected_servers_now(&pids));
    (found.pids.into_iter().collect(), found.elsewhere)
}

/// Processes of this host at the other end of a connection; none if they cannot be seen.
#[pyfunction]
pub fn socket_peers(py: Python<'_>, inode: u64) -> Vec<i32> {
    match py.detach(|| SocketTable::now().peer(inode)) {
        Some(ConnectionPeer::Processes(pids)) => pids,
        _ => Vec::new(),
    }
}
