//! A thread that empties the kernel's buffers while a burst lasts.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::instance::Pipe;
use super::opens::{self, Open};
use super::options::Options;
use super::replies::{self, Reply};
use super::spool::{Spool, Stream};

/// Largest memory of a burst; a longer one is kept in a file.
const MEMORY_BYTES: usize = 64 << 20;

/// Reads until it is told to finish, or dropped.
pub struct Reader {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Heard>>>,
    /// Its id, so that its processor time can be told from others'.
    pub tid: i32,
}

/// Watches for facts that the events lack; none where the kernel takes no programs.
#[derive(Default)]
pub struct Listeners {
    /// Of opens.
    pub opens: Option<opens::Listener>,
    /// Of replies.
    pub replies: Option<replies::Listener>,
}

impl Listeners {
    fn hear(&mut self) {
        self.opens.iter_mut().for_each(opens::Listener::hear);
        self.replies.iter_mut().for_each(replies::Listener::hear);
    }
}

/// Data from a reader.
#[derive(Default)]
pub struct Heard {
    /// Pages by pipe.
    pub streams: Vec<Stream>,
    /// Files that were opened.
    pub opens: Vec<Open>,
    /// Replies of sessions.
    pub replies: Vec<Reply>,
}

impl Reader {
    /// Begins to read these pipes, and to listen, again and again.
    pub fn start(pipes: Vec<Pipe>, listeners: Listeners, options: &Options) -> io::Result<Self> {
        let spool = Spool::new(MEMORY_BYTES, &options.spool_dir)?;
        let poll = options.poll;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (tell, told) = std::sync::mpsc::channel();
        let thread = thread::Builder::new()
            .name("tierwise-reader".into())
            .spawn(move || {
                let _ = tell.send(current_tid());
                read_until(&stopped, &pipes, listeners, spool, poll)
            })?;
        Ok(Self {
            stop,
            thread: Some(thread),
            tid: told.recv().unwrap_or_default(),
        })
    }

    /// Everything that was read, with the rest that is still there; the events must be off.
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
        // A caller that drops it does not want the data.
        let _ = self.join();
    }
}

fn read_until(
    stopped: &AtomicBool,
    pipes: &[Pipe],
    mut listeners: Listeners,
    mut spool: Spool,
    poll: Duration,
) -> io::Result<Heard> {
    let mut streams: Vec<_> = pipes.iter().map(|pipe| Stream::new(pipe.cpu)).collect();
    let mut page = vec![0; page_bytes()];
    loop {
        // Read the flag first: events from before it was set are then read after it was seen.
        let last = stopped.load(Ordering::Acquire);
        for (pipe, stream) in pipes.iter().zip(&mut streams) {
            drain(&pipe.file, &mut page, |page| stream.push(page, &mut spool))?;
        }
        listeners.hear();
        if last {
            spool.finish(&mut streams)?;
            let Listeners { opens, replies } = listeners;
            return Ok(Heard {
                streams,
                opens: opens.map_or_else(Vec::new, opens::Listener::into_opens),
                replies: replies.map_or_else(Vec::new, replies::Listener::into_replies),
            });
        }
        thread::park_timeout(poll);
    }
}

/// Reads pages until there is none.
pub(super) fn drain(
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

pub(super) fn page_bytes() -> usize {
    // SAFETY: takes no pointers.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}
