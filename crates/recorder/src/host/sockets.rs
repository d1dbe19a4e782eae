//! Sockets of this host, in all network namespaces: who holds the other end of a connection, and who listens.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::{io, thread};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::host::processes;
use crate::host::processes::shares_namespace;

/// All sockets at one instant, with the processes that have them open.
#[derive(Debug, Default)]
pub struct SocketTable {
    /// By inode; an inode number is that of one socket on the whole host.
    all: HashMap<u64, (NetworkNamespace, Socket)>,
    /// Connections of TCP by both ends.
    pairs: HashMap<(SocketAddr, SocketAddr), Vec<(NetworkNamespace, u64)>>,
    owners: HashMap<u64, Vec<i32>>,
    owned: BTreeMap<i32, Vec<u64>>,
}

type NetworkNamespace = usize;

/// Where a server takes connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListeningAddresses {
    pub ports: BTreeSet<u16>,
    pub paths: BTreeSet<String>,
}

/// Who is at the other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConnectionPeer {
    /// Processes of this host.
    Processes(Vec<i32>),
    /// Another host, or an address that leads to one.
    Address(IpAddr, u16),
}

impl SocketTable {
    /// The state at this instant. It reads every descriptor of the host: tens of milliseconds.
    pub fn now() -> Self {
        let mut sockets = Self::default();
        let mut namespaces: HashMap<_, i32> = HashMap::new();
        for pid in processes::all_processes() {
            let Ok(namespace) = fs::read_link(format!("/proc/{pid}/ns/net")) else {
                continue;
            };
            namespaces.entry(namespace).or_insert(pid);
            for inode in socket_inodes(pid) {
                sockets.owners.entry(inode).or_default().push(pid);
                sockets.owned.entry(pid).or_default().push(inode);
            }
        }
        for (namespace, pid) in namespaces.into_values().enumerate() {
            for (inode, socket) in sockets_in_namespace_of(pid) {
                if let (SocketEnds::Tcp { local, remote }, false) = (&socket.ends, socket.listens) {
                    let pair = sockets.pairs.entry((*local, *remote)).or_default();
                    pair.push((namespace, inode));
                }
                sockets.all.insert(inode, (namespace, socket));
            }
        }
        sockets
    }

    pub(crate) fn listening(&self, pids: &[i32]) -> ListeningAddresses {
        let mut found = ListeningAddresses::default();
        for (_, socket) in self.of(pids).filter(|(_, socket)| socket.listens) {
            match &socket.ends {
                SocketEnds::Unix { path, .. } => found.paths.extend(path.clone()),
                SocketEnds::Tcp { local, .. } => _ = found.ports.insert(local.port()),
            }
        }
        found
    }

    /// Connections that processes accepted, each with its other end; not those among themselves.
    pub(crate) fn accepted(&self, pids: &[i32]) -> Vec<ConnectionPeer> {
        let listening = self.listening(pids);
        self.connections(pids, |ends| match ends {
            SocketEnds::Unix { path, .. } => {
                path.as_ref().is_some_and(|it| listening.paths.contains(it))
            }
            SocketEnds::Tcp { local, .. } => listening.ports.contains(&local.port()),
        })
    }

    /// Connections that processes opened, each with its other end; not those among themselves.
    pub(crate) fn opened(&self, pids: &[i32]) -> Vec<ConnectionPeer> {
        let listening = self.listening(pids);
        self.connections(pids, |ends| match ends {
            SocketEnds::Unix { path, .. } => path.is_none(),
            SocketEnds::Tcp { local, .. } => !listening.ports.contains(&local.port()),
        })
    }

    fn connections(
        &self,
        pids: &[i32],
        wanted: impl Fn(&SocketEnds) -> bool,
    ) -> Vec<ConnectionPeer> {
        let sockets = self.of(pids).filter(|(_, socket)| wanted(&socket.ends));
        let peers = sockets.filter_map(|(inode, _)| self.peer(inode));
        let strangers = |peer: &ConnectionPeer| match peer {
            ConnectionPeer::Processes(there) => !there.iter().any(|pid| pids.contains(pid)),
            ConnectionPeer::Address(..) => true,
        };
        peers.filter(strangers).collect()
    }

    /// The other end of a connection; none of a socket that listens, or whose peer nobody has open.
    pub fn peer(&self, inode: u64) -> Option<ConnectionPeer> {
        let (namespace, socket) = self.all.get(&inode)?;
        if socket.listens {
            return None;
        }
        match &socket.ends {
            SocketEnds::Unix { peer, .. } => {
                let pids = self.owners.get(&(*peer)?)?;
                Some(ConnectionPeer::Processes(pids.clone()))
            }
            SocketEnds::Tcp { local, remote } => {
                let ends = self.pairs.get(&(*remote, *local));
                let ends = ends.map_or(&[][..], Vec::as_slice);
                // The same pair of loopback addresses may exist in several namespaces.
                let here = ends.iter().find(|(there, _)| there == namespace);
                let end = here.or(ends.first().filter(|_| !remote.ip().is_loopback()));
                let pids = end.and_then(|(_, inode)| self.owners.get(inode));
                Some(match pids {
                    Some(pids) => ConnectionPeer::Processes(pids.clone()),
                    None => ConnectionPeer::Address(remote.ip(), remote.port()),
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
pub fn socket_inodes(pid: i32) -> Vec<u64> {
    let opened = processes::open_files(pid).into_iter();
    opened
        .filter_map(|file| {
            let number = file.path.strip_prefix("socket:[")?.strip_suffix(']')?;
            number.parse().ok()
        })
        .collect()
}

// The sockets of a network namespace, as the kernel tells them.
//
// Those of TCP are lines of `/proc/net/tcp` and `tcp6`. Unix sockets come from `sock_diag`, which `ss` asks too:
// `/proc/net/unix` does not say which socket is connected to which.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Socket {
    pub listens: bool,
    pub ends: SocketEnds,
}

/// What tells to whom a socket is connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketEnds {
    Unix {
        /// Its path, or that of the listener that accepted it; none for a client's.
        path: Option<String>,
        peer: Option<u64>,
    },
    Tcp {
        local: SocketAddr,
        remote: SocketAddr,
    },
}

/// The sockets of the namespace that a process is in, by inode.
pub fn sockets_in_namespace_of(pid: i32) -> Vec<(u64, Socket)> {
    let mut sockets = Vec::new();
    for table in ["tcp", "tcp6"] {
        let text = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        sockets.extend(text.lines().filter_map(parse_tcp_line));
    }
    // A thread of its own, because it enters the namespace.
    let thread = thread::Builder::new().spawn(move || unix_sockets(pid)).ok();
    let unix = thread.and_then(|thread| thread.join().ok()?.ok());
    sockets.extend(unix.unwrap_or_default());
    sockets
}

fn parse_tcp_line(line: &str) -> Option<(u64, Socket)> {
    const LISTENING: &str = "0A";
    const GONE: u64 = 0;
    let words: Vec<&str> = line.split_whitespace().collect();
    let inode = words.get(9)?.parse().ok().filter(|inode| *inode != GONE)?;
    let socket = Socket {
        listens: *words.get(3)? == LISTENING,
        ends: SocketEnds::Tcp {
            local: parse_hex_address(words.get(1)?)?,
            remote: parse_hex_address(words.get(2)?)?,
        },
    };
    Some((inode, socket))
}

/// An address as hexadecimal words of the host's byte order, and a port.
fn parse_hex_address(text: &str) -> Option<SocketAddr> {
    let (digits, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let words = (0..digits.len()).step_by(8);
    let words = words.map(|at| u32::from_str_radix(digits.get(at..at + 8)?, 16).ok());
    let bytes: Vec<u8> = words
        .collect::<Option<Vec<u32>>>()?
        .into_iter()
        .flat_map(u32::to_ne_bytes)
        .collect();
    let ip = match *bytes.as_slice() {
        [a, b, c, d] => IpAddr::from([a, b, c, d]),
        _ => Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).to_canonical(),
    };
    Some(SocketAddr::new(ip, port))
}

const BUFFER_BYTES: usize = 1 << 16;
/// Of `struct nlmsghdr`.
const HEADER_BYTES: usize = 16;
/// Of `struct unix_diag_msg`.
const MESSAGE_BYTES: usize = 16;

fn unix_sockets(pid: i32) -> io::Result<Vec<(u64, Socket)>> {
    if !shares_namespace(pid, "net") {
        let namespace = File::open(format!("/proc/{pid}/ns/net"))?;
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
    }
    let (flags, protocol) = (SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG));
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
    send(&socket, &unix_diag_request(), SendFlags::empty())?;
    let (mut sockets, mut buffer) = (Vec::new(), vec![0_u8; BUFFER_BYTES]);
    loop {
        let (got, _) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        if got == 0 || read_netlink_messages(&buffer[..got], &mut sockets) {
            return Ok(sockets);
        }
    }
}

/// A header, and `struct unix_diag_req` for all sockets of the namespace with their names and peers.
fn unix_diag_request() -> Vec<u8> {
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    const SHOW_NAME_AND_PEER: u32 = 1 | 4;
    const LENGTH_BYTES: u32 = 40;
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    let (sequence, port, inode): (u32, u32, u32) = (1, 0, 0);
    let (any_state, no_cookie) = (u32::MAX, [u32::MAX; 2]);
    let mut request = LENGTH_BYTES.to_ne_bytes().to_vec();
    request.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request.extend(flags.to_ne_bytes());
    request.extend([sequence, port].map(u32::to_ne_bytes).as_flattened());
    request.extend([libc::AF_UNIX as u8, 0, 0, 0]);
    let words = [any_state, inode, SHOW_NAME_AND_PEER];
    request.extend(words.map(u32::to_ne_bytes).as_flattened());
    request.extend(no_cookie.map(u32::to_ne_bytes).as_flattened());
    request
}

/// Reads the messages of one answer; whether it was the last one.
fn read_netlink_messages(mut rest: &[u8], sockets: &mut Vec<(u64, Socket)>) -> bool {
    while let (Some(length), Some(kind)) = (u32_at(rest, 0), u16_at(rest, 4)) {
        let length = length as usize;
        if length < HEADER_BYTES || length > rest.len() {
            return true;
        }
        match i32::from(kind) {
            libc::NLMSG_DONE | libc::NLMSG_ERROR => return true,
            _ => sockets.extend(parse_unix_socket(&rest[HEADER_BYTES..length])),
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    false
}

fn parse_unix_socket(message: &[u8]) -> Option<(u64, Socket)> {
    const NAME: u16 = 0;
    const PEER: u16 = 2;
    const LISTENING: u8 = 10;
    let (mut path, mut peer) = (None, None);
    let mut rest = message.get(MESSAGE_BYTES..)?;
    while let (Some(length), Some(kind)) = (u16_at(rest, 0), u16_at(rest, 2)) {
        let length = usize::from(length);
        let Some(value) = rest.get(4..length) else {
            break;
        };
        match kind {
            NAME => path = unix_socket_path(value),
            PEER => peer = u32_at(value, 0).map(u64::from),
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    let socket = Socket {
        listens: message[2] == LISTENING,
        ends: SocketEnds::Unix { path, peer },
    };
    Some((u32_at(message, 4)?.into(), socket))
}

/// A path; an abstract name begins with a null byte, which is written as `@`.
fn unix_socket_path(name: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(name).into_owned();
    let text = match text.strip_prefix('\0') {
        Some(rest) => format!("@{rest}"),
        None => text,
    };
    let text = text.trim_end_matches('\0').to_owned();
    (!text.is_empty()).then_some(text)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
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
        let sockets = SocketTable::now();
        for end in [inode(&client), inode(&accepted), inode(&connected)] {
            assert_eq!(
                sockets.peer(end),
                Some(ConnectionPeer::Processes(vec![own]))
            );
        }
        assert_eq!(sockets.peer(inode(&listener)), None);
        let found = sockets.listening(&[own]);
        assert!(found.ports.contains(&port));
        assert!(found.paths.contains(place.to_str().unwrap()));
        assert!(sockets.accepted(&[own]).is_empty(), "both ends are its own");
    }

    #[test]
    fn addresses_are_read_as_the_kernel_writes_them() {
        let shown = |text| parse_hex_address(text).map(|found| found.to_string());
        let native = |text: &str, other: &str| match cfg!(target_endian = "little") {
            true => text.to_owned(),
            false => other.to_owned(),
        };
        let loopback = native("0100007F:1538", "7F000001:1538");
        assert_eq!(shown(&loopback).as_deref(), Some("127.0.0.1:5432"));
        let mapped = native(
            "0000000000000000FFFF00000100007F:1538",
            "00000000000000000000FFFF7F000001:1538",
        );
        assert_eq!(shown(&mapped).as_deref(), Some("127.0.0.1:5432"));
        assert_eq!(shown("xyz"), None);
        assert_eq!(shown("01:02"), None);
    }

    #[test]
    fn both_ends_name_each_other_and_the_accepted_one_has_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("socket");
        let listener = UnixListener::bind(&place).unwrap();
        let client = UnixStream::connect(&place).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let sockets = sockets_in_namespace_of(std::process::id().cast_signed());
        let unix = |listens, path: Option<&str>, peer| Socket {
            listens,
            ends: SocketEnds::Unix {
                path: path.map(str::to_owned),
                peer,
            },
        };
        let (one, other) = (inode(&client), inode(&accepted));
        let path = place.to_str();
        for expected in [
            (one, unix(false, None, Some(other))),
            (other, unix(false, path, Some(one))),
            (inode(&listener), unix(true, path, None)),
        ] {
            assert!(sockets.contains(&expected), "{expected:?}");
        }
    }

    #[test]
    fn damaged_answers_end() {
        let mut sockets = Vec::new();
        assert!(!read_netlink_messages(&[], &mut sockets));
        assert!(read_netlink_messages(&[3; 64], &mut sockets));
        assert!(parse_unix_socket(&[0; 18]).is_some());
        assert!(parse_unix_socket(&[0; 3]).is_none());
    }
}
