//! How requests come from the kernel and answers go back: one file for each way, behind one interface.
//!
//! A transport knows nothing of models and times. One thread owns it.

pub(crate) mod fuse;
pub(crate) mod fuse_uring;
mod ring;
pub(crate) mod ublk;

use std::fs::File;
use std::io;
use std::io::{IoSlice, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use fuse::{
    Connection, Files, IN_HEADER_BYTES, InHeader, LARGEST_REQUEST_BYTES, Message, bytes_of,
    encoded, no_bytes, out_header,
};
use serde::{Deserialize, Serialize};
use tierwise_device::Nanos;

use crate::clock;

/// The ways that a request can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransportKind {
    /// `read(2)` and `write(2)` of `/dev/fuse`, one call each a request; on every kernel.
    Fuse,
    /// FUSE over `io_uring`, since Linux 6.14: requests and answers in batches.
    FuseIoUring,
    /// Block devices of the server itself, since Linux 6.5: in batches too, and without FUSE and loop devices.
    Ublk,
}

/// Which request an answer is for; the transport chooses the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag(pub u64);

/// A request as it arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming<'a> {
    pub tag: Tag,
    pub partition: usize,
    /// The power cycle that the sender's handle is of.
    pub cycle: u64,
    pub operation: Operation<'a>,
}

/// What is asked for; offsets are bytes from the start of the device.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation<'a> {
    Read { offset: u64, length: u32 },
    Write { offset: u64, data: &'a [u8] },
    Flush,
    Discard { offset: u64, length: u64 },
}

/// The answer to a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer<'a> {
    Data(&'a [u8]),
    Written(u32),
    Done,
    /// An error of input or output.
    Failed,
}

/// How long [`Transport::receive`] may sleep if nothing arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Not at all.
    Poll,
    /// Until this time of the monotonic clock.
    Until(Nanos),
    Forever,
}

/// Why [`Transport::receive`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// Requests came, the wait was over, or the waker ended it.
    Requests,
    /// The kernel has let go of the device: nothing will arrive any more.
    Ended,
}

/// Requests from the kernel and answers to it.
pub(crate) trait Transport {
    /// Hands over answers that are still on their way, then every request that has arrived.
    fn receive(&mut self, wait: Wait, take: impl FnMut(Incoming<'_>)) -> io::Result<Received>;

    /// Answers a request, at the latest when [`Transport::receive`] is called next.
    fn answer(&mut self, tag: Tag, answer: Answer<'_>);

    /// Handles opened from now on are of this power cycle.
    fn set_cycle(&mut self, cycle: u64);
}

// Wakes the thread that waits for requests.

/// An event counter of the kernel (`eventfd(2)`); clones share it.
#[derive(Debug)]
pub(crate) struct Waker(OwnedFd);

impl Waker {
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes no pointers; the descriptor is new and nobody else's.
        let descriptor = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: as above.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    pub fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    pub fn wake(&self) {
        let event = 1_u64.to_ne_bytes();
        // SAFETY: the buffer has the length given. It cannot fail: the counter does not overflow.
        unsafe { libc::write(self.0.as_raw_fd(), event.as_ptr().cast(), event.len()) };
    }

    /// Forgets wake-ups so far.
    pub fn clear(&self) {
        let mut events = [0_u8; 8];
        // SAFETY: the buffer has the length given; with nothing to read the call returns at once.
        unsafe { libc::read(self.0.as_raw_fd(), events.as_mut_ptr().cast(), events.len()) };
    }
}

// `/dev/fuse`: one system call to take a request, one to answer it.

/// The device, and a buffer for one message.
pub(crate) struct FuseDevice {
    device: File,
    files: Files,
    waker: Waker,
    buffer: Vec<u8>,
}

impl FuseDevice {
    pub fn new(connection: Connection, files: Files, waker: Waker) -> io::Result<Self> {
        let device = connection.device;
        // SAFETY: takes no pointers; the descriptor is open.
        if unsafe { libc::fcntl(device.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            device,
            files,
            waker,
            buffer: vec![0; LARGEST_REQUEST_BYTES + 4096],
        })
    }

    /// Sleeps until there is a message or the waker is used.
    fn sleep(&self, timeout: Option<libc::timespec>) -> io::Result<()> {
        let descriptor = |fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut polled = [
            descriptor(self.device.as_raw_fd()),
            descriptor(self.waker.descriptor()),
        ];
        let timeout = timeout
            .as_ref()
            .map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the array has the length given; the time lives as long as the call.
        if unsafe { libc::ppoll(polled.as_mut_ptr(), 2, timeout, std::ptr::null()) } < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        } else if polled[1].revents != 0 {
            self.waker.clear();
        }
        Ok(())
    }
}

impl Transport for FuseDevice {
    fn receive(&mut self, wait: Wait, mut take: impl FnMut(Incoming<'_>)) -> io::Result<Received> {
        match wait {
            // A read says as well as a poll whether there is a message.
            Wait::Poll => {}
            Wait::Until(time) => self.sleep(Some(clock::time_until(time)))?,
            Wait::Forever => self.sleep(None)?,
        }
        loop {
            let length = match self.device.read(&mut self.buffer) {
                Ok(length) => length,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(Received::Requests),
                    // A message that was taken back before it was read.
                    Some(libc::ENOENT | libc::EINTR) => continue,
                    Some(libc::ENODEV) => return Ok(Received::Ended),
                    _ => return Err(error),
                },
            };
            let message = &self.buffer[..length];
            let header = InHeader::parse(message);
            let (argument, rest) = message[IN_HEADER_BYTES..].split_at(header.argument_bytes());
            let tag = Tag(header.unique);
            match self.files.message(header, argument, rest, tag) {
                Message::Request(incoming) => take(incoming),
                Message::Reply(reply) => send(&self.device, header.unique, bytes_of(&reply)),
                Message::Silent => {}
            }
        }
    }

    fn answer(&mut self, tag: Tag, answer: Answer<'_>) {
        let mut short = no_bytes();
        send(&self.device, tag.0, encoded(answer, &mut short));
    }

    fn set_cycle(&mut self, cycle: u64) {
        self.files.cycle = cycle;
    }
}

/// Sends an answer. The kernel refuses it only if nobody waits for it any more.
fn send(mut device: &File, unique: u64, answer: Result<&[u8], i32>) {
    let header = out_header(unique, answer.map(<[u8]>::len));
    let data = answer.unwrap_or_default();
    drop(device.write_vectored(&[IoSlice::new(&header), IoSlice::new(data)]));
}
