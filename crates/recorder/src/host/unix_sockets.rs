//! Unix sockets of a network namespace with their peers, from the kernel's `sock_diag`, which `ss` asks too.
//!
//! `/proc/net/unix` does not say which socket is connected to which.

use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::thread;

/// One Unix socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnixSocket {
    pub inode: u64,
    /// Its path, or that of the listener that accepted it; none for a client's.
    pub path: Option<String>,
    pub peer: Option<u64>,
    pub listens: bool,
}

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const SHOW_NAME_AND_PEER: u32 = 1 | 4;
const NAME: u16 = 0;
const PEER: u16 = 2;
const LISTENING: u8 = 10;
const BUFFER_BYTES: usize = 1 << 16;
const HEADER_BYTES: usize = mem::size_of::<libc::nlmsghdr>();
/// Of `struct unix_diag_msg`.
const MESSAGE_BYTES: usize = 16;

#[repr(C)]
struct Request {
    header: libc::nlmsghdr,
    family: u8,
    protocol: u8,
    pad: u16,
    states: u32,
    inode: u32,
    show: u32,
    cookie: [u32; 2],
}

/// The sockets of the namespace that a process is in; none where the kernel does not tell.
pub fn in_namespace_of(pid: i32) -> Vec<UnixSocket> {
    // A thread of its own, because it enters the namespace.
    let asked = thread::spawn(move || {
        enter(pid)?;
        dump()
    });
    asked.join().ok().and_then(Result::ok).unwrap_or_default()
}

fn enter(pid: i32) -> io::Result<()> {
    let own = std::fs::read_link("/proc/self/ns/net")?;
    let path = format!("/proc/{pid}/ns/net");
    if std::fs::read_link(&path)? == own {
        return Ok(());
    }
    let namespace = File::open(path)?;
    // SAFETY: the descriptor is open; only this thread changes its namespace, and it ends soon.
    match unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn dump() -> io::Result<Vec<UnixSocket>> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers are passed.
    let number = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and nobody else has it.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    let request = Request {
        header: libc::nlmsghdr {
            nlmsg_len: mem::size_of::<Request>() as u32,
            nlmsg_type: SOCK_DIAG_BY_FAMILY,
            nlmsg_flags: (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16,
            nlmsg_seq: 1,
            nlmsg_pid: 0,
        },
        family: libc::AF_UNIX as u8,
        protocol: 0,
        pad: 0,
        states: u32::MAX,
        inode: 0,
        show: SHOW_NAME_AND_PEER,
        cookie: [u32::MAX; 2],
    };
    let bytes = mem::size_of::<Request>();
    // SAFETY: the pointer is to a live structure of that length.
    let sent = unsafe { libc::send(socket.as_raw_fd(), (&raw const request).cast(), bytes, 0) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let (mut sockets, mut buffer) = (Vec::new(), vec![0_u8; BUFFER_BYTES]);
    loop {
        let room = buffer.len();
        // SAFETY: the buffer is live and has that length.
        let got = unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), room, 0) };
        let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
        if got == 0 || read_messages(&buffer[..got], &mut sockets) {
            return Ok(sockets);
        }
    }
}

/// Reads the messages of one answer; whether it was the last one.
fn read_messages(mut rest: &[u8], sockets: &mut Vec<UnixSocket>) -> bool {
    while let (Some(length), Some(kind)) = (word(rest, 0), half(rest, 4)) {
        let length = length as usize;
        if length < HEADER_BYTES || length > rest.len() {
            return true;
        }
        match i32::from(kind) {
            libc::NLMSG_DONE | libc::NLMSG_ERROR => return true,
            _ => sockets.extend(socket_of(&rest[HEADER_BYTES..length])),
        }
        rest = rest.get(aligned(length)..).unwrap_or_default();
    }
    false
}

fn socket_of(message: &[u8]) -> Option<UnixSocket> {
    let mut socket = UnixSocket {
        inode: word(message, 4)?.into(),
        listens: *message.get(2)? == LISTENING,
        ..UnixSocket::default()
    };
    let mut rest = message.get(MESSAGE_BYTES..)?;
    while let (Some(length), Some(kind)) = (half(rest, 0), half(rest, 2)) {
        let length = usize::from(length);
        let Some(value) = rest.get(4..length) else {
            break;
        };
        match kind {
            NAME => socket.path = path_of(value),
            PEER => socket.peer = word(value, 0).map(u64::from),
            _ => {}
        }
        rest = rest.get(aligned(length)..).unwrap_or_default();
    }
    Some(socket)
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

fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::{UnixListener, UnixStream};

    fn inode(socket: &impl AsRawFd) -> u64 {
        let path = format!("/proc/self/fd/{}", socket.as_raw_fd());
        std::fs::metadata(path).unwrap().ino()
    }

    #[test]
    fn both_ends_name_each_other_and_the_accepted_one_has_the_path() {
        let place = std::env::temp_dir().join(format!("tierwise-unix-{}", std::process::id()));
        let listener = UnixListener::bind(&place).unwrap();
        let client = UnixStream::connect(&place).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let sockets = in_namespace_of(std::process::id().cast_signed());
        let of = |number: u64| sockets.iter().find(|one| one.inode == number).unwrap();
        assert_eq!(of(inode(&client)).peer, Some(inode(&accepted)));
        assert_eq!(of(inode(&accepted)).peer, Some(inode(&client)));
        assert_eq!(of(inode(&accepted)).path.as_deref(), place.to_str());
        assert_eq!(of(inode(&client)).path, None);
        assert!(of(inode(&listener)).listens);
        std::fs::remove_file(place).unwrap();
    }

    #[test]
    fn damaged_answers_end() {
        let mut sockets = Vec::new();
        assert!(!read_messages(&[], &mut sockets));
        assert!(read_messages(&[3; 64], &mut sockets));
        assert!(socket_of(&[0; 18]).is_some());
        assert!(socket_of(&[0; 3]).is_none());
    }
}
