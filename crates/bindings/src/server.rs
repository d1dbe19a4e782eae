//! What the host tells about a server and its clients, for the recorder in Python.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::prelude::*;
use serde::Serialize;
use tierwise_recorder::{Peer, Server, Sockets};
use tierwise_recording::ClientProgram;

use crate::convert::{json, parsed};
use crate::rules::PyRules;

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

/// The server with a pid, as JSON.
#[pyfunction]
pub fn server_of(py: Python<'_>, pid: i32, rules: &PyRules, root: PathBuf) -> PyResult<String> {
    let server = py.detach(|| Server::of(pid, &rules.0, &root, &Sockets::now()));
    json(&ServerText {
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
    py.detach(|| tierwise_recorder::listed(&pids))
}

/// Settings of a server from its command line and its files.
#[pyfunction]
pub fn settings_of(
    py: Python<'_>,
    pid: i32,
    rules: &PyRules,
    root: PathBuf,
) -> BTreeMap<String, String> {
    py.detach(|| tierwise_recorder::settings_of(pid, &rules.0, &root))
}

/// What a program is by its name; none if the name says nothing.
#[pyfunction]
pub fn client_kind(name: &str) -> PyResult<Option<String>> {
    let kind = tierwise_recorder::kind_of_name(name);
    let text = kind.map(|kind| json(&kind)).transpose()?;
    Ok(text.map(|text| text.trim_matches('"').to_owned()))
}

/// The programs that hold sessions of some processes now, added to those of earlier looks; both as JSON.
#[pyfunction]
pub fn clients_seen(py: Python<'_>, known: &str, pids: Vec<i32>) -> PyResult<String> {
    let mut known: Vec<ClientProgram> = parsed(known)?;
    let seen = py.detach(|| tierwise_recorder::clients_of(&pids, &Sockets::now()));
    tierwise_recorder::merge(&mut known, seen);
    json(&known)
}

/// First processes of the servers on this host that some processes are connected to, and whether there is one elsewhere.
#[pyfunction]
pub fn servers_of(py: Python<'_>, pids: Vec<i32>) -> (Vec<i32>, bool) {
    let found = py.detach(|| tierwise_recorder::servers_of_now(&pids));
    (found.pids.into_iter().collect(), found.elsewhere)
}

/// Processes of this host at the other end of a connection; none if they cannot be seen.
#[pyfunction]
pub fn socket_peers(py: Python<'_>, inode: u64) -> Vec<i32> {
    match py.detach(|| Sockets::now().peer(inode)) {
        Some(Peer::Processes(pids)) => pids,
        _ => Vec::new(),
    }
}
