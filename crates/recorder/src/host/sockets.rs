//! Sockets of this host, in all network namespaces: who holds the other end of a connection, and who listens.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::net::{IpAddr, SocketAddr};

use crate::host::processes;
use crate::host::socket_tables::{Ends, Socket, in_namespace_of};

/// All sockets at one instant, with the processes that have them open.
#[derive(Debug, Default)]
pub struct Sockets {
    /// By inode; an inode number is that of one socket on the whole host.
    all: HashMap<u64, (Namespace, Socket)>,
    /// Connections of TCP by both ends.
    pairs: HashMap<(SocketAddr, SocketAddr), Vec<(Namespace, u64)>>,
    owners: HashMap<u64, Vec<i32>>,
    owned: BTreeMap<i32, Vec<u64>>,
}

type Namespace = usize;

/// Where a server takes connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listening {
    pub ports: BTreeSet<u16>,
    pub paths: BTreeSet<String>,
}

/// Who is at the other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// Processes of this host.
    Processes(Vec<i32>),
    /// Another host, or an address that leads to one.
    Address(IpAddr, u16),
}

impl Sockets {
    /// The state at this instant. It reads every descriptor of the host: tens of milliseconds.
    pub fn now() -> Self {
        let mut sockets = Self::default();
        let mut namespaces: HashMap<_, i32> = HashMap::new();
        for pid in processes::all() {
            let Ok(namespace) = fs::read_link(format!("/proc/{pid}/ns/net")) else {
                continue;
            };
            namespaces.entry(namespace).or_insert(pid);
            for inode in inodes_of(pid) {
                sockets.owners.entry(inode).or_default().push(pid);
                sockets.owned.entry(pid).or_default().push(inode);
            }
        }
        for (namespace, pid) in namespaces.into_values().enumerate() {
            for (inode, socket) in in_namespace_of(pid) {
                if let (Ends::Tcp { local, remote }, false) = (&socket.ends, socket.listens) {
                    let pair = sockets.pairs.entry((*local, *remote)).or_default();
                    pair.push((namespace, inode));
                }
                sockets.all.insert(inode, (namespace, socket));
            }
        }
        sockets
    }

    pub(crate) fn listening(&self, pids: &[i32]) -> Listening {
        let mut found = Listening::default();
        for (_, socket) in self.of(pids).filter(|(_, socket)| socket.listens) {
            match &socket.ends {
                Ends::Unix { path, .. } => found.paths.extend(path.clone()),
                Ends::Tcp { local, .. } => _ = found.ports.insert(local.port()),
            }
        }
        found
    }

    /// Connections that processes accepted, each with its other end; not those among themselves.
    pub(crate) fn accepted(&self, pids: &[i32]) -> Vec<Peer> {
        let listening = self.listening(pids);
        self.connections(pids, |ends| match ends {
            Ends::Unix { path, .. } => path.as_ref().is_some_and(|it| listening.paths.contains(it)),
            Ends::Tcp { local, .. } => listening.ports.contains(&local.port()),
        })
    }

    /// Connections that processes opened, each with its other end; not those among themselves.
    pub(crate) fn opened(&self, pids: &[i32]) -> Vec<Peer> {
        let listening = self.listening(pids);
        self.connections(pids, |ends| match ends {
            Ends::Unix { path, .. } => path.is_none(),
            Ends::Tcp { local, .. } => !listening.ports.contains(&local.port()),
        })
    }

    fn connections(&self, pids: &[i32], wanted: impl Fn(&Ends) -> bool) -> Vec<Peer> {
        let sockets = self.of(pids).filter(|(_, socket)| wanted(&socket.ends));
        let peers = sockets.filter_map(|(inode, _)| self.peer(inode));
        let strangers = |peer: &Peer| match peer {
            Peer::Processes(there) => !there.iter().any(|pid| pids.contains(pid)),
            Peer::Address(..) => true,
        };
        peers.filter(strangers).collect()
    }

    /// The other end of a connection; none of a socket that listens, or whose peer nobody has open.
    pub fn peer(&self, inode: u64) -> Option<Peer> {
        let (namespace, socket) = self.all.get(&inode)?;
        if socket.listens {
            return None;
        }
        match &socket.ends {
            Ends::Unix { peer, .. } => {
                let pids = self.owners.get(&(*peer)?)?;
                Some(Peer::Processes(pids.clone()))
            }
            Ends::Tcp { local, remote } => {
                let ends = self.pairs.get(&(*remote, *local));
                let ends = ends.map_or(&[][..], Vec::as_slice);
                // The same pair of loopback addresses may exist in several namespaces.
                let here = ends.iter().find(|(there, _)| there == namespace);
                let end = here.or(ends.first().filter(|_| !remote.ip().is_loopback()));
                let pids = end.and_then(|(_, inode)| self.owners.get(inode));
                Some(match pids {
                    Some(pids) => Peer::Processes(pids.clone()),
                    None => Peer::Address(remote.ip(), remote.port()),
                })
            }
        }
    }

    /// Sockets that processes have open and the kernel tells of, each once.
    fn of(&self, pids: &[i32]) -> impl Iterator<Item = (u64, &Socket)> {
        let owned = pids.iter().filter_map(|pid| self.owned.get(pid));
        let inodes: BTreeSet<u64> = owned.flatten().copied().collect();
        let known = |inode| Some((inode, &self.all.get(&inode)?.1));
        inodes.into_iter().filter_map(known)
    }
}

/// Sockets among the open files of a process.
pub fn inodes_of(pid: i32) -> Vec<u64> {
    let opened = processes::open_files(pid).into_iter();
    opened
        .filter_map(|file| {
            let number = file.path.strip_prefix("socket:[")?.strip_suffix(']')?;
            number.parse().ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::{UnixListener, UnixStream};

    fn inode(socket: &impl AsRawFd) -> u64 {
        let path = format!("/proc/self/fd/{}", socket.as_raw_fd());
        fs::metadata(path).unwrap().ino()
    }

    #[test]
    fn the_other_end_is_found_on_the_loopback_and_by_path() {
        let own = std::process::id().cast_signed();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("socket");
        let unix = UnixListener::bind(&place).unwrap();
        let connected = UnixStream::connect(&place).unwrap();
        let _served = unix.accept().unwrap();
        let sockets = Sockets::now();
        for end in [inode(&client), inode(&accepted), inode(&connected)] {
            assert_eq!(sockets.peer(end), Some(Peer::Processes(vec![own])));
        }
        assert_eq!(sockets.peer(inode(&listener)), None);
        let found = sockets.listening(&[own]);
        assert!(found.ports.contains(&port));
        assert!(found.paths.contains(place.to_str().unwrap()));
        assert!(sockets.accepted(&[own]).is_empty(), "both ends are its own");
    }
}
