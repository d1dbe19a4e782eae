//! A Unix socket that costs a client fewer wake-ups than Tokio's own.
//!
//! Tokio watches a socket for reading and for writing at once. On a Unix socket Linux then reports it
//! writable each time that the peer has *read* something, and so wakes a client that waits for an answer once
//! for nothing per request. This one is watched for writing only while it is full.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

pub(super) struct PostgresSocket {
    stream: AsyncFd<UnixStream>,
    /// The same socket watched for writing, while it is full.
    full: Option<AsyncFd<UnixStream>>,
}

impl PostgresSocket {
    pub fn connect(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_nonblocking(true)?;
        let stream = watch_socket(stream, Interest::READABLE)?;
        Ok(Self { stream, full: None })
    }

    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.full.is_none() {
            let same = self.stream.get_ref().try_clone()?;
            self.full = Some(watch_socket(same, Interest::WRITABLE)?);
        }
        let full = self.full.as_ref().expect("made above");
        ready!(full.poll_write_ready(context))?.clear_ready();
        Poll::Ready(Ok(()))
    }
}

fn watch_socket(stream: UnixStream, interest: Interest) -> io::Result<AsyncFd<UnixStream>> {
    // SAFETY: a `UnixStream` owns its descriptor: open, and the same, until the `AsyncFd` drops it.
    Ok(unsafe { AsyncFd::register_with_interest(stream, interest)? })
}

impl AsyncRead for PostgresSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.stream.poll_read_ready(context))?;
            let room = buffer.initialize_unfilled();
            match self.stream.get_ref().read(room) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => ready.clear_ready(),
                Err(error) => return Poll::Ready(Err(error)),
                Ok(length) => {
                    // A read shorter than asked for took all there was: the next read would only report that.
                    if length > 0 && length < room.len() {
                        ready.clear_ready();
                    }
                    buffer.advance(length);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl AsyncWrite for PostgresSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            match self.stream.get_ref().write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    ready!(self.poll_room(context))?
                }
                done => {
                    self.full = None;
                    return Poll::Ready(done);
                }
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.stream.get_ref().shutdown(Shutdown::Write))
    }
}
