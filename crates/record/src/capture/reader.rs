//! A thread that empties the kernel's buffers while a burst lasts.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::instance::Pipe;
use super::spool::Stream;

/// Reads until it is told to finish, or dropped.
pub struct Reader {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Vec<Stream>>>>,
    /// Its id, so that its processor time can be told from others'.
    pub tid: i32,
}

impl Reader {
    /// Begins to read these pipes, again and again after `poll`.
    pub fn start(pipes: Vec<Pipe>, poll: Duration) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (tell, told) = std::sync::mpsc::channel();
        let thread = thread::Builder::new()
            .name("tierwise-reader".into())
            .spawn(move || {
                let _ = tell.send(current_tid());
                read_until(&stopped, &pipes, poll)
            })?;
        Ok(Self {
            stop,
            thread: Some(thread),
            tid: told.recv().unwrap_or_default(),
        })
    }

    /// Everything that was read, with what is still there; the events must be off.
    pub fn finish(mut self) -> io::Result<Vec<Stream>> {
        self.join()
    }

    fn join(&mut self) -> io::Result<Vec<Stream>> {
        self.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else {
            return Ok(Vec::new());
        };
        thread.thread().unpark();
        thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the reader ended")))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Who drops it does not want what was read.
        let _ = self.join();
    }
}

fn read_until(stopped: &AtomicBool, pipes: &[Pipe], poll: Duration) -> io::Result<Vec<Stream>> {
    let mut streams: Vec<_> = pipes.iter().map(|pipe| Stream::new(pipe.cpu)).collect();
    let mut page = vec![0; page_bytes()];
    loop {
        // The flag first: what came before it was set is read after it was seen.
        let last = stopped.load(Ordering::Acquire);
        for (pipe, stream) in pipes.iter().zip(&mut streams) {
            drain(&pipe.file, &mut page, stream)?;
        }
        if last {
            return Ok(streams);
        }
        thread::park_timeout(poll);
    }
}

/// Reads pages until there is none.
fn drain(mut pipe: &File, page: &mut [u8], stream: &mut Stream) -> io::Result<()> {
    loop {
        match pipe.read(page) {
            Ok(0) => return Ok(()),
            Ok(length) => stream.push(&page[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn current_tid() -> i32 {
    // SAFETY: takes no pointers.
    unsafe { libc::gettid() }
}

fn page_bytes() -> usize {
    // SAFETY: takes no pointers.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}
