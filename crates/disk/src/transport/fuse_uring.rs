//! FUSE over `io_uring` (Linux 6.14): the kernel writes requests to memory of the server.
//!
//! The kernel demands a queue for each possible processor, and in each queue entries with a buffer for the
//! largest request. All queues share one ring, whose only thread serves them. Layouts are those of
//! `include/uapi/linux/fuse.h`; the protocol is that of `Documentation/filesystems/fuse-io-uring.rst`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use io_uring::{opcode, types};

use super::command_ring::{CommandRing, RingEvent};
use super::fuse::{
    FuseConnection, FuseMessage, FuseRequestHeader, LARGEST_REQUEST_BYTES, ServedFiles,
    empty_reply_bytes, encode_answer, reply_bytes, reply_header,
};
use super::{
    IncomingRequest, ReceiveOutcome, ReceiveWait, RequestAnswer, RequestTag, Transport, Waker,
};
use crate::byte_store::MemoryMapping;

const REGISTER: u32 = 1;
const COMMIT_AND_FETCH: u32 = 2;

/// Entries of all queues together, and of each.
const ENTRIES: usize = 4096;
const LEAST_IN_QUEUE: usize = 16;
const MOST_IN_QUEUE: usize = 128;

/// `struct fuse_uring_req_header`.
#[repr(C)]
#[derive(Clone, Copy)]
struct FuseUringHeader {
    in_out: [u8; 128],
    argument: [u8; 128],
    flags: u64,
    commit_id: u64,
    payload_bytes: u32,
    padding: u32,
    reserved: u64,
}

/// Memory that the kernel and the server write in turn, each while an entry is its own.
struct SharedMemory {
    headers: Box<[FuseUringHeader]>,
    vectors: Box<[[libc::iovec; 2]]>,
    payload: MemoryMapping,
}

/// First byte of an entry's payload.
fn payload_start(entry: usize) -> u64 {
    (entry * LARGEST_REQUEST_BYTES) as u64
}

impl SharedMemory {
    fn new(entries: usize) -> io::Result<Self> {
        let empty = FuseUringHeader {
            in_out: [0; 128],
            argument: [0; 128],
            flags: 0,
            commit_id: 0,
            payload_bytes: 0,
            padding: 0,
            reserved: 0,
        };
        let payload = MemoryMapping::new(entries * LARGEST_REQUEST_BYTES)?;
        let mut headers = vec![empty; entries].into_boxed_slice();
        let largest = LARGEST_REQUEST_BYTES as u64;
        let vectors = headers.iter_mut().enumerate().map(|(entry, header)| {
            [
                libc::iovec {
                    iov_base: std::ptr::from_mut(header).cast(),
                    iov_len: size_of::<FuseUringHeader>(),
                },
                libc::iovec {
                    iov_base: payload.at(payload_start(entry), largest).cast(),
                    iov_len: LARGEST_REQUEST_BYTES,
                },
            ]
        });
        Ok(Self {
            vectors: vectors.collect(),
            headers,
            payload,
        })
    }

    /// Writes the answer to the request in an entry.
    fn put(&mut self, entry: usize, answer: Result<&[u8], i32>) {
        let header = &mut self.headers[entry];
        let unique = FuseRequestHeader::parse(&header.in_out).unique;
        let out = reply_header(unique, answer.map(<[u8]>::len));
        header.in_out[..out.len()].copy_from_slice(&out);
        let data = answer.unwrap_or_default();
        assert!(
            data.len() <= LARGEST_REQUEST_BYTES,
            "an answer within its buffer"
        );
        header.payload_bytes = data.len() as u32;
        self.payload.write(payload_start(entry), data);
    }
}

/// A ring that is large enough for the kernel's queues. The thread that makes it alone may use it.
pub(crate) struct QueueRing {
    ring: CommandRing,
    in_queue: usize,
    entries: usize,
}

impl QueueRing {
    pub fn new(waker: Waker) -> io::Result<Self> {
        let queues = possible_processors()?;
        let in_queue = (ENTRIES / queues).clamp(LEAST_IN_QUEUE, MOST_IN_QUEUE);
        let entries = queues * in_queue;
        let ring = CommandRing::new(entries, waker)?;
        Ok(Self {
            ring,
            in_queue,
            entries,
        })
    }
}

/// The ring and its entries. The ring is first, so that it is dropped before the memory that it knows.
pub(crate) struct FuseUring {
    queues: QueueRing,
    connection: FuseConnection,
    shared: SharedMemory,
    files: ServedFiles,
}

impl FuseUring {
    /// Hands all entries to the kernel, which from then on sends requests.
    pub fn new(
        queues: QueueRing,
        connection: FuseConnection,
        files: ServedFiles,
    ) -> io::Result<Self> {
        let entries = queues.entries;
        let mut transport = Self {
            queues,
            connection,
            shared: SharedMemory::new(entries)?,
            files,
        };
        for entry in 0..entries {
            transport.push(entry, REGISTER);
        }
        transport.queues.ring.enter(ReceiveWait::Poll)?;
        Ok(transport)
    }

    /// Puts a command for an entry in the ring.
    fn push(&mut self, entry: usize, command: u32) {
        let mut bytes = [0; 80];
        let queue = (entry / self.queues.in_queue) as u16;
        bytes[8..16].copy_from_slice(&self.shared.headers[entry].commit_id.to_ne_bytes());
        bytes[16..18].copy_from_slice(&queue.to_ne_bytes());
        let vectors = (&raw const self.shared.vectors[entry]) as u64;
        let mut sqe =
            opcode::UringCmd80::new(types::Fd(self.connection.device.as_raw_fd()), command)
                .cmd(bytes)
                .addr(Some(vectors))
                .build()
                .user_data(entry as u64);
        // SAFETY: an entry is a `struct io_uring_sqe`, whose field `len` is the 32 bits at byte 24. The library
        // has no name for it in this command, which passes two vectors.
        unsafe { std::ptr::from_mut(&mut sqe).cast::<u32>().add(6).write(2) };
        self.queues.ring.push(&sqe);
    }

    /// Answers the request in an entry, which then is for the next one.
    fn commit(&mut self, entry: usize, answer: Result<&[u8], i32>) {
        self.shared.put(entry, answer);
        self.push(entry, COMMIT_AND_FETCH);
    }
}

impl Transport for FuseUring {
    fn receive(
        &mut self,
        wait: ReceiveWait,
        mut take: impl FnMut(IncomingRequest<'_>),
    ) -> io::Result<ReceiveOutcome> {
        self.queues.ring.enter_if_needed(wait)?;
        while let Some(event) = self.queues.ring.event() {
            let RingEvent::Command { number, result } = event else {
                continue;
            };
            match -result {
                0 => {}
                libc::ENOTCONN | libc::ECONNABORTED | libc::ECANCELED => {
                    return Ok(ReceiveOutcome::Ended);
                }
                error => return Err(io::Error::from_raw_os_error(error)),
            }
            let entry = number as usize;
            let header = &self.shared.headers[entry];
            let message = FuseRequestHeader::parse(&header.in_out);
            let payload_bytes = header.payload_bytes as usize;
            let rest = self
                .shared
                .payload
                .read(payload_start(entry), payload_bytes);
            let tag = RequestTag(entry as u64);
            match self.files.message(message, &header.argument, rest, tag) {
                FuseMessage::Request(incoming) => take(incoming),
                FuseMessage::Reply(reply) => self.commit(entry, reply_bytes(&reply)),
                FuseMessage::Silent => self.push(entry, COMMIT_AND_FETCH),
            }
        }
        Ok(ReceiveOutcome::Requests)
    }

    fn answer(&mut self, tag: RequestTag, answer: RequestAnswer<'_>) {
        let mut short = empty_reply_bytes();
        self.commit(tag.0 as usize, encode_answer(answer, &mut short));
    }

    fn set_cycle(&mut self, cycle: u64) {
        self.files.cycle = cycle;
    }
}

/// The kernel's number of queues: processors that there may ever be.
fn possible_processors() -> io::Result<usize> {
    let text = fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let last = text.trim().rsplit(['-', ',']).next().unwrap_or_default();
    let last: usize = last.parse().map_err(io::Error::other)?;
    Ok(last + 1)
}

/// The kernel's switch for FUSE over `io_uring`. It is read when a file system is mounted, and is off after boot.
const SWITCH: &str = "/sys/module/fuse/parameters/enable_uring";

/// The switch is on while this lives, and then as it was before. No other file system is concerned: a server
/// must ask for `io_uring`.
///
/// A file beside the control socket says that the switch is to be put back, should the process be killed.
pub(crate) struct FuseUringSwitch {
    switch: Option<File>,
    note: PathBuf,
}

impl FuseUringSwitch {
    /// Turns it on, if this kernel has it and it is off.
    pub fn new(socket: &Path) -> Self {
        let note = socket.with_file_name("enable_uring_was_off");
        let switch = Self::turn_on(&note).ok().flatten();
        Self { switch, note }
    }

    fn turn_on(note: &Path) -> io::Result<Option<File>> {
        let mut switch = OpenOptions::new().read(true).write(true).open(SWITCH)?;
        // One server after the other, so that none takes the other's setting for the machine's.
        switch.lock()?;
        let mut before = [0];
        switch.read_exact(&mut before)?;
        if before == *b"Y" {
            return Ok(None);
        }
        File::create(note)?;
        fs::write(SWITCH, "Y")?;
        Ok(Some(switch))
    }
}

impl Drop for FuseUringSwitch {
    fn drop(&mut self) {
        if self.switch.take().is_some() {
            drop(fs::write(SWITCH, "N"));
            drop(fs::remove_file(&self.note));
        }
    }
}
