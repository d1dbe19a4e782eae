//! A thread that empties the kernel's buffers while a burst lasts.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::param::page_size;
use rustix::thread::gettid;

use super::bpf::Watch;
use super::instance::Pipe;
use super::opens::Open;
use super::paths::Paths;
use super::replies::Reply;
use super::spool::{Spool, Stream};
use crate::UserError;

/// Largest memory of a burst; a longer one is kept in a file.
const MEMORY_BYTES: usize = 64 << 20;
/// How often the kernel's buffers are emptied.
const POLL: Duration = Duration::from_millis(20);

/// Reads until it is told to finish, or dropped.
pub struct Reader {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Heard>>>,
    /// Its id, so that its processor time can be told from others'.
    pub tid: i32,
}

/// Watches for facts that the events lack; none where the kernel takes no programs.
#[derive(Default)]
pub struct Watches {
    pub opens: Option<(Arc<Watch>, Paths)>,
    pub replies: Option<Arc<Watch>>,
}

/// Data from a reader, each in order of time.
#[derive(Default)]
pub struct Heard {
    /// Pages by pipe.
    pub streams: Vec<Stream>,
    pub opens: Vec<Open>,
    pub replies: Vec<Reply>,
}

impl Heard {
    fn hear(&mut self, watches: &mut Watches) {
        if let Some((watch, paths)) = &mut watches.opens {
            watch.drain(|record| self.opens.extend(Open::heard(record, paths)));
        }
        if let Some(watch) = &watches.replies {
            watch.drain(|record| self.replies.extend(Reply::heard(record)));
        }
    }
}

impl Reader {
    /// Begins to read these pipes, and to listen, again and again.
    pub fn start(pipes: Vec<Pipe>, watches: Watches, spool_dir: &Path) -> io::Result<Self> {
        let spool = Spool::new(MEMORY_BYTES, spool_dir)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (tell, told) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("tierwise-reader".into())
            .spawn(move || {
                let _ = tell.send(gettid().as_raw_nonzero().get());
                read_until(&stopped, &pipes, watches, spool)
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
    mut watches: Watches,
    mut spool: Spool,
) -> io::Result<Heard> {
    let mut heard = Heard {
        streams: pipes.iter().map(|pipe| Stream::new(pipe.cpu)).collect(),
        ..Heard::default()
    };
    let mut page = vec![0; page_size()];
    loop {
        // Read the flag first: events from before it was set are then read after it was seen.
        let last = stopped.load(Ordering::Acquire);
        for (pipe, stream) in pipes.iter().zip(&mut heard.streams) {
            drain(&pipe.file, &mut page, |page| stream.push(page, &mut spool))?;
        }
        heard.hear(&mut watches);
        if last {
            spool.finish(&mut heard.streams)?;
            heard.opens.sort_by_key(|open| open.time_ns);
            heard.replies.sort_by_key(|reply| reply.time_ns);
            return Ok(heard);
        }
        thread::park_timeout(POLL);
    }
}

/// Reads pages until there is none.
pub fn drain(
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

/// Events could not be moved from the kernel to the file that keeps them.
pub fn unreadable(error: &io::Error) -> UserError {
    let (what, fix) = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => (
            "write the recording",
            "free space there, record for a shorter time or less often (--duty), or name another directory",
        ),
        _ => (
            "read the events",
            "see that no core is switched off while recording",
        ),
    };
    UserError::new(format!("cannot {what}: {error}"), fix)
}
