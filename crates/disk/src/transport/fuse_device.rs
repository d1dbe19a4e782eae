//! `/dev/fuse`: one system call to take a request, one to answer it.

use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::AsRawFd;

use super::fuse::{
    FuseConnection, FuseMessage, FuseRequestHeader, IN_HEADER_BYTES, LARGEST_REQUEST_BYTES,
    ServedFiles, empty_reply_bytes, encode_answer, reply_bytes, reply_header,
};
use super::{
    IncomingRequest, ReceiveOutcome, ReceiveWait, RequestAnswer, RequestTag, Transport, Waker,
};
use crate::clock;

/// The device, and a buffer for one message.
pub(crate) struct FuseDevice {
    device: File,
    files: ServedFiles,
    waker: Waker,
    buffer: Vec<u8>,
}

impl FuseDevice {
    pub fn new(connection: FuseConnection, files: ServedFiles, waker: Waker) -> io::Result<Self> {
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
    fn receive(
        &mut self,
        wait: ReceiveWait,
        mut take: impl FnMut(IncomingRequest<'_>),
    ) -> io::Result<ReceiveOutcome> {
        match wait {
            // A read says as well as a poll whether there is a message.
            ReceiveWait::Poll => {}
            ReceiveWait::Until(time) => self.sleep(Some(clock::timespec_until(time)))?,
            ReceiveWait::Forever => self.sleep(None)?,
        }
        loop {
            let length = match self.device.read(&mut self.buffer) {
                Ok(length) => length,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(ReceiveOutcome::Requests),
                    // A message that was taken back before it was read.
                    Some(libc::ENOENT | libc::EINTR) => continue,
                    Some(libc::ENODEV) => return Ok(ReceiveOutcome::Ended),
                    _ => return Err(error),
                },
            };
            let message = &self.buffer[..length];
            let header = FuseRequestHeader::parse(message);
            let (argument, rest) = message[IN_HEADER_BYTES..].split_at(header.argument_bytes());
            let tag = RequestTag(header.unique);
            match self.files.message(header, argument, rest, tag) {
                FuseMessage::Request(incoming) => take(incoming),
                FuseMessage::Reply(reply) => send(&self.device, header.unique, reply_bytes(&reply)),
                FuseMessage::Silent => {}
            }
        }
    }

    fn answer(&mut self, tag: RequestTag, answer: RequestAnswer<'_>) {
        let mut short = empty_reply_bytes();
        send(&self.device, tag.0, encode_answer(answer, &mut short));
    }

    fn set_cycle(&mut self, cycle: u64) {
        self.files.cycle = cycle;
    }
}

/// Sends an answer. The kernel refuses it only if nobody waits for it any more.
fn send(mut device: &File, unique: u64, answer: Result<&[u8], i32>) {
    let header = reply_header(unique, answer.map(<[u8]>::len));
    let data = answer.unwrap_or_default();
    drop(device.write_vectored(&[IoSlice::new(&header), IoSlice::new(data)]));
}
