//! `/dev/fuse`: one system call to take a request, one to answer it.

use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::AsRawFd;

use super::fuse::{
    Connection, Files, IN_HEADER_BYTES, InHeader, LARGEST_REQUEST_BYTES, Message, encoded,
    no_bytes, out_header,
};
use super::waker::Waker;
use super::{Answer, Incoming, Received, Tag, Transport, Wait};
use crate::clock;

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

    /// Sleeps until there is a message; gives whether the waker was used.
    fn sleep(&self, wait: Wait) -> io::Result<bool> {
        let descriptor = |fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut polled = [
            descriptor(self.device.as_raw_fd()),
            descriptor(self.waker.descriptor()),
        ];
        let timeout = match wait {
            Wait::Forever => None,
            Wait::Poll => Some(clock::timespec(0)),
            Wait::Until(time) => Some(clock::timespec(time.saturating_sub(clock::now()))),
        };
        let timeout = timeout
            .as_ref()
            .map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the array has the length given; the time lives as long as the call.
        let status = unsafe { libc::ppoll(polled.as_mut_ptr(), 2, timeout, std::ptr::null()) };
        if status < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted {
                Ok(false)
            } else {
                Err(error)
            };
        }
        Ok(polled[1].revents != 0)
    }
}

impl Transport for FuseDevice {
    fn receive(&mut self, wait: Wait, mut take: impl FnMut(Incoming<'_>)) -> io::Result<Received> {
        // While polling, a read says as well as a poll whether there is a message.
        let woken = wait != Wait::Poll && self.sleep(wait)?;
        if woken {
            self.waker.clear();
        }
        loop {
            let length = match self.device.read(&mut self.buffer) {
                Ok(length) => length,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => break,
                    // A message that was taken back before it was read.
                    Some(libc::ENOENT | libc::EINTR) => continue,
                    Some(libc::ENODEV) => return Ok(Received::Ended),
                    _ => return Err(error),
                },
            };
            let message = &self.buffer[..length];
            let header = InHeader::parse(message);
            let (argument, rest) = message[IN_HEADER_BYTES..].split_at(header.argument_bytes());
            match self.files.message(header, argument, rest) {
                Message::Request {
                    partition,
                    cycle,
                    operation,
                } => take(Incoming {
                    tag: Tag(header.unique),
                    partition,
                    cycle,
                    operation,
                }),
                Message::Reply(reply) => {
                    send(
                        &self.device,
                        header.unique,
                        reply
                            .as_ref()
                            .map(|short| short.bytes())
                            .map_err(|error| *error),
                    );
                }
                Message::Silent => {}
            }
        }
        Ok(if woken {
            Received::Woken
        } else {
            Received::Requests
        })
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
