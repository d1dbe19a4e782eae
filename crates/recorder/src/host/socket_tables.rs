//! The sockets of a network namespace, as the kernel tells them.
//!
//! Those of TCP are lines of `/proc/net/tcp` and `tcp6`. Unix sockets come from `sock_diag`, which `ss` asks too:
//! `/proc/net/unix` does not say which socket is connected to which.

use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::thread;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::host::processes::shares_namespace;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Socket {
    pub listens: bool,
    pub ends: Ends,
}

/// What tells to whom a socket is connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ends {
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
pub fn in_namespace_of(pid: i32) -> Vec<(u64, Socket)> {
    let mut sockets = Vec::new();
    for table in ["tcp", "tcp6"] {
        let text = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        sockets.extend(text.lines().filter_map(tcp_line));
    }
    // A thread of its own, because it enters the namespace.
    let thread = thread::Builder::new().spawn(move || unix_sockets(pid)).ok();
    let unix = thread.and_then(|thread| thread.join().ok()?.ok());
    sockets.extend(unix.unwrap_or_default());
    sockets
}

fn tcp_line(line: &str) -> Option<(u64, Socket)> {
    const LISTENING: &str = "0A";
    const GONE: u64 = 0;
    let words: Vec<&str> = line.split_whitespace().collect();
    let inode = words.get(9)?.parse().ok().filter(|inode| *inode != GONE)?;
    let socket = Socket {
        listens: *words.get(3)? == LISTENING,
        ends: Ends::Tcp {
            local: address(words.get(1)?)?,
            remote: address(words.get(2)?)?,
        },
    };
    Some((inode, socket))
}

/// An address as hexadecimal words of the host's byte order, and a port.
fn address(text: &str) -> Option<SocketAddr> {
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
    send(&socket, &request(), SendFlags::empty())?;
    let (mut sockets, mut buffer) = (Vec::new(), vec![0_u8; BUFFER_BYTES]);
    loop {
        let (got, _) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        if got == 0 || read_messages(&buffer[..got], &mut sockets) {
            return Ok(sockets);
        }
    }
}

/// A header, and `struct unix_diag_req` for all sockets of the namespace with their names and peers.
fn request() -> Vec<u8> {
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
fn read_messages(mut rest: &[u8], sockets: &mut Vec<(u64, Socket)>) -> bool {
    while let (Some(length), Some(kind)) = (word(rest, 0), half(rest, 4)) {
        let length = length as usize;
        if length < HEADER_BYTES || length > rest.len() {
            return true;
        }
        match i32::from(kind) {
            libc::NLMSG_DONE | libc::NLMSG_ERROR => return true,
            _ => sockets.extend(unix_socket(&rest[HEADER_BYTES..length])),
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    false
}

fn unix_socket(message: &[u8]) -> Option<(u64, Socket)> {
    const NAME: u16 = 0;
    const PEER: u16 = 2;
    const LISTENING: u8 = 10;
    let (mut path, mut peer) = (None, None);
    let mut rest = message.get(MESSAGE_BYTES..)?;
    while let (Some(length), Some(kind)) = (half(rest, 0), half(rest, 2)) {
        let length = usize::from(length);
        let Some(value) = rest.get(4..length) else {
            break;
        };
        match kind {
            NAME => path = path_of(value),
            PEER => peer = word(value, 0).map(u64::from),
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    let socket = Socket {
        listens: message[2] == LISTENING,
        ends: Ends::Unix { path, peer },
    };
    Some((word(message, 4)?.into(), socket))
}

/// A path; an abstract name begins with a null byte, which is written as `@`.
fn path_of(name: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(name).into_owned();
    let text = match text.strip_prefix('\0') {
        Some(rest) => format!("@{rest}"),
        None => text,
    };
    let text = text.trim_end_matches('\0').to_owned();
    (!text.is_empty()).then_some(text)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn addresses_are_read_as_the_kernel_writes_them() {
        let told = |text| address(text).map(|found| found.to_string());
        let native = |text: &str, other: &str| match cfg!(target_endian = "little") {
            true => text.to_owned(),
            false => other.to_owned(),
        };
        let loopback = native("0100007F:1538", "7F000001:1538");
        assert_eq!(told(&loopback).as_deref(), Some("127.0.0.1:5432"));
        let mapped = native(
            "0000000000000000FFFF00000100007F:1538",
            "00000000000000000000FFFF7F000001:1538",
        );
        assert_eq!(told(&mapped).as_deref(), Some("127.0.0.1:5432"));
        assert_eq!(told("xyz"), None);
        assert_eq!(told("01:02"), None);
    }

    fn inode(socket: &impl AsRawFd) -> u64 {
        let path = format!("/proc/self/fd/{}", socket.as_raw_fd());
        fs::metadata(path).unwrap().ino()
    }

    #[test]
    fn both_ends_name_each_other_and_the_accepted_one_has_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("socket");
        let listener = UnixListener::bind(&place).unwrap();
        let client = UnixStream::connect(&place).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let sockets = in_namespace_of(std::process::id().cast_signed());
        let unix = |listens, path: Option<&str>, peer| Socket {
            listens,
            ends: Ends::Unix {
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
        assert!(!read_messages(&[], &mut sockets));
        assert!(read_messages(&[3; 64], &mut sockets));
        assert!(unix_socket(&[0; 18]).is_some());
        assert!(unix_socket(&[0; 3]).is_none());
    }
}
