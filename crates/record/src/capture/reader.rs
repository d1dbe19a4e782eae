//! A thread that empties the kernel's buffers while a burst lasts.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::instance::Pipe;
use super::opens::{Listener, Open};
use super::options::Options;
use super::spool::{Spool, Stream};

/// What a burst may take of memory; a longer one is kept in a file.
const MEMORY_BYTES: usize = 64 << 20;

/// Reads until it is told to finish, or dropped.
pub struct Reader {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Heard>>>,
    /// Its id, so that its processor time can be told from others'.
    pub tid: i32,
}

/// What a reader got: pages by pipe, and opens.
pub type Heard = (Vec<Stream>, Vec<Open>);

impl Reader {
    /// Begins to read these pipes, and to listen for opens, again and again.
    pub fn start(
        pipes: Vec<Pipe>,
        listener: Option<Listener>,
        options: &Options,
    ) -> io::Result<Self> {
        let spool = Spool::new(MEMORY_BYTES, &options.spool_dir)?;
        let poll = options.poll;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (tell, told) = std::sync::mpsc::channel();
        let thread = thread::Builder::new()
            .name("tierwise-reader".into())
            .spawn(move || {
                let _ = tell.send(current_tid());
                read_until(&stopped, &pipes, listener, spool, poll)
            })?;
        Ok(Self {
            stop,
            thread: Some(thread),
            tid: told.recv().unwrap_or_default(),
        })
    }

    /// Everything that was read, with what is still there; the events must be off.
    pub fn finish(mut self) -> io::Result<Heard> {
        self.join()
    }

    fn join(&mut self) -> io::Result<Heard> {
        self.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else {
            return Ok(Heard::default());
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

fn read_until(
    stopped: &AtomicBool,
    pipes: &[Pipe],
    mut listener: Option<Listener>,
    mut spool: Spool,
    poll: Duration,
) -> io::Result<Heard> {
    let mut streams: Vec<_> = pipes.iter().map(|pipe| Stream::new(pipe.cpu)).collect();
    let mut page = vec![0; page_bytes()];
    loop {
        // The flag first: what came before it was set is read after it was seen.
        let last = stopped.load(Ordering::Acquire);
        for (pipe, stream) in pipes.iter().zip(&mut streams) {
            drain(&pipe.file, &mut page, |page| stream.push(page, &mut spool))?;
        }
        listener.iter_mut().for_each(Listener::hear);
        if last {
            spool.finish(&mut streams)?;
            let opens = listener.map_or_else(Vec::new, Listener::into_opens);
            return Ok((streams, opens));
        }
        thread::park_timeout(poll);
    }
}

/// Reads pages until there is none.
fn drain(
    mut pipe: &File,
    page: &mut [u8],
    mut keep: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    loop {
        match pipe.read(page) {
            Ok(0) => return Ok(()),
            Ok(length) => keep(&page[..length])?,
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
