//! What tells one server of a host from another: port, socket, data directory, version, container.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use tierwise_recording::Rules;

use crate::host::files::data_directory;
use crate::host::paths::text_within;
use crate::host::processes;
use crate::host::sockets::Sockets;

/// A running server, as `/proc` and its files tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// Its first process.
    pub pid: i32,
    /// Name of its engine.
    pub engine: String,
    /// As the data directory or the path of the program tells it.
    pub version: Option<String>,
    /// Ports of TCP on which it listens.
    pub ports: Vec<u16>,
    /// Paths of its Unix sockets.
    pub sockets: Vec<String>,
    /// As the server sees it.
    pub data_directory: Option<PathBuf>,
    /// Whether it has process numbers or a control group of a container.
    pub in_container: bool,
}

/// Files of a data directory that begin with the version of the server that wrote them.
const VERSION_FILES: [&str; 3] = ["PG_VERSION", "mariadb_upgrade_info", "mysql_upgrade_info"];
const MOST_VERSION_BYTES: u64 = 60;

impl Server {
    /// The server with a pid, whose files have that root.
    #[must_use]
    pub fn of(pid: i32, rules: &Rules, root: &Path, sockets: &Sockets) -> Self {
        let listening = sockets.listening(&[pid]);
        let directory = data_directory(pid, rules);
        Self {
            pid,
            engine: rules.engine.clone(),
            version: version(pid, directory.as_deref(), root),
            ports: listening.ports.into_iter().collect(),
            sockets: listening.paths.into_iter().collect(),
            data_directory: directory,
            in_container: in_container(pid),
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut facts = vec![match &self.version {
            Some(version) => format!("{} {version}", self.engine),
            None => self.engine.clone(),
        }];
        facts.extend(self.ports.iter().map(|port| format!("port {port}")));
        facts.extend(self.sockets.iter().map(|path| format!("socket {path}")));
        let directory = self.data_directory.iter();
        facts.extend(directory.map(|path| format!("data directory {}", path.display())));
        if self.in_container {
            facts.push("in a container".to_owned());
        }
        write!(formatter, "pid {}, {}", self.pid, facts.join(", "))
    }
}

fn version(pid: i32, directory: Option<&Path>, root: &Path) -> Option<String> {
    let written = directory.and_then(|directory| {
        let mut files = VERSION_FILES.iter();
        files.find_map(|name| {
            let text = text_within(root, &directory.join(name), MOST_VERSION_BYTES)?;
            plausible(text.split_whitespace().next()?)
        })
    });
    written.or_else(|| {
        let program = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
        let mut parts = program.iter().filter_map(|part| part.to_str());
        parts.find_map(plausible)
    })
}

/// A version: it begins with a digit and has nothing but letters, digits and a few signs.
fn plausible(text: &str) -> Option<String> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || ".-+~".contains(letter);
    let begins = text.starts_with(|letter: char| letter.is_ascii_digit());
    (begins && text.chars().all(fits)).then(|| text.to_owned())
}

/// Whether a process has process numbers of its own, or a control group that a container's manager made.
fn in_container(pid: i32) -> bool {
    if !processes::shares_namespace(pid, "pid") {
        return true;
    }
    let groups = processes::text(format!("/proc/{pid}/cgroup"));
    let managers = ["/docker", "/containerd", "/kubepods", "/libpod", "/lxc"];
    let own = processes::text("/proc/self/cgroup");
    managers.iter().any(|name| groups.contains(name)) && groups != own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_told_by_all_that_differs() {
        let server = Server {
            pid: 4711,
            engine: "postgres".to_owned(),
            version: Some("15".to_owned()),
            ports: vec![5432],
            sockets: vec!["/tmp/.s.PGSQL.5432".to_owned()],
            data_directory: Some("/srv/pg".into()),
            in_container: true,
        };
        assert_eq!(
            server.to_string(),
            "pid 4711, postgres 15, port 5432, socket /tmp/.s.PGSQL.5432, data directory /srv/pg, in a container"
        );
    }

    #[test]
    fn only_what_looks_like_a_version_is_one() {
        let expected = Some("10.11.19-MariaDB");
        assert_eq!(plausible("10.11.19-MariaDB").as_deref(), expected);
        assert_eq!(plausible("root:x:0:0"), None);
        assert_eq!(plausible("15\u{1b}[2J"), None);
    }
}
