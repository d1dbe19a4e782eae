//! Traces processes: three instances of the tracer, switched on for one burst at a time.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::param::page_size;
use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};

use super::bpf::{Attachment, Watch};
use super::decode::Decoder;
use super::instance::{Counts, Tracers};
use super::opens::Paths;
use super::raw_burst::RawBurst;
use super::{opens, replies};
use crate::UserError;
use crate::event::EventKind;
use crate::host::machine::CpuUse;
use crate::host::processes::{self, Family, LiveThread, thread_ids_of};
use crate::tracer::instance::Pipe;
use crate::tracer::opens::Open;
use crate::tracer::raw_burst::{Spool, Stream};
use crate::tracer::replies::Reply;

/// Where events come from and where they go.
pub struct Places {
    /// Root of a mounted tracefs.
    pub tracefs: PathBuf,
    /// The names of the tracer's instances begin so; `-calls`, `-sched` and `-block` follow.
    pub instance: String,
    /// Buffer of the kernel for unread events, for each core and instance; less on a machine with so many cores that it
    /// would take a sixteenth of the memory. Requests to devices get a quarter of it.
    pub buffer_bytes: u64,
    /// Directory of the nameless files in which long bursts wait to be decoded.
    pub spool_dir: PathBuf,
    /// Directory of the recording, empty or new.
    pub out: PathBuf,
    /// Every event of the work is recorded: there is no unrecorded time in which the same work ran.
    pub whole: bool,
}

/// A target that can be traced. Dropping it releases everything it took from the kernel.
pub struct BurstTracer {
    // First, so that its reader releases the instances before they are removed.
    burst: Option<Running>,
    spool_dir: PathBuf,
    /// Processes to trace, with everything they start.
    pids: Vec<i32>,
    /// Servers of emulated disks, whose processor time is storage's, not foreign.
    disk_server_pids: Vec<i32>,
    decoder: Arc<Decoder>,
    tracers: Tracers,
    clients: Vec<i32>,
    /// None where the kernel takes no programs.
    open_watch: Option<Arc<Watch>>,
    /// The same.
    reply_watch: Option<Arc<Watch>>,
    /// Detaches the programs of the last burst.
    releasing: Option<JoinHandle<()>>,
    counts_before: Counts,
}

/// A burst that is being taken.
struct Running {
    burst: RawBurst,
    reader: Reader,
    cpu: CpuUse,
    /// Programs that watch opens and replies, as long as this is kept.
    watching: Vec<Attachment>,
}

impl BurstTracer {
    /// Prepares to trace; nothing is switched on yet.
    pub fn attach(
        places: Places,
        pids: Vec<i32>,
        disk_server_pids: Vec<i32>,
    ) -> Result<Self, UserError> {
        let mut decoder = Decoder::default();
        let tracers = Tracers::create(&places, &mut decoder)?;
        let tracer = Self {
            open_watch: opens::load(&places.tracefs).ok().map(Arc::new),
            reply_watch: replies::load(&places.tracefs).ok().map(Arc::new),
            spool_dir: places.spool_dir,
            pids,
            disk_server_pids,
            decoder: Arc::new(decoder),
            tracers,
            clients: Vec::new(),
            releasing: None,
            counts_before: Counts::default(),
            burst: None,
        };
        tracer.targets(&Family::now())?;
        Ok(tracer)
    }

    pub fn decoder(&self) -> Arc<Decoder> {
        Arc::clone(&self.decoder)
    }

    pub fn set_processes(&mut self, pids: Vec<i32>) {
        self.pids = pids;
    }

    /// Follows the scheduling of the target's clients too, from the next burst on.
    pub fn set_clients(&mut self, mut tids: Vec<i32>) {
        tids.sort_unstable();
        tids.dedup();
        self.clients = tids;
    }

    /// Threads of the target that are alive, and its clients.
    fn threads_in(&self, family: &Family) -> Vec<LiveThread> {
        let pids = family.with_descendants(&self.pids);
        let mut threads: Vec<_> = pids.into_iter().flat_map(processes::threads).collect();
        let clients = self.clients.iter();
        threads.extend(clients.filter_map(|&tid| processes::thread(tid)));
        threads
    }

    fn targets(&self, family: &Family) -> Result<Vec<i32>, UserError> {
        let pids = family.with_descendants(&self.pids);
        if pids.is_empty() {
            return Err(UserError::new(
                "the process to record does not run",
                "start the database first, or give the pid of one that runs",
            ));
        }
        Ok(pids)
    }

    /// Switches on; later events belong to the burst.
    pub fn begin(&mut self) -> Result<(), UserError> {
        if let Some(releasing) = self.releasing.take() {
            // It returns nothing, and a panic in it would have been reported already.
            let _ = releasing.join();
        }
        let begun = self.switch_on();
        if begun.is_err() {
            self.tracers.switch_off()?;
        }
        self.burst = Some(begun?);
        Ok(())
    }

    pub fn in_burst(&self) -> bool {
        self.burst.is_some()
    }

    /// Events since [`Self::begin`], taken or lost.
    pub fn events(&self) -> u64 {
        let counts = self.tracers.counts().unwrap_or(self.counts_before) - self.counts_before;
        counts.read + counts.lost
    }

    /// Switches off, and takes the data recorded since [`Self::begin`]; none if it was not called.
    pub fn end(&mut self) -> Result<Option<RawBurst>, UserError> {
        let Some(running) = self.burst.take() else {
            return Ok(None);
        };
        let mut burst = running.burst;
        burst.end_ns = monotonic_ns();
        burst.cpu = running.cpu.since();
        self.tracers.switch_off()?;
        // The kernel takes some 50 ms to detach each program, in which it does nothing else for us.
        // Without a thread, that happens here.
        let release = move || drop(running.watching);
        self.releasing = thread::Builder::new().spawn(release).ok();
        let heard = running.reader.finish();
        let heard = heard.map_err(|error| unreadable(&error))?;
        burst.streams = heard.streams;
        burst.replies = heard.replies;
        burst.hear(heard.opens);
        let counts = self.tracers.counts().unwrap_or(self.counts_before);
        let taken = counts - self.counts_before;
        (burst.events, burst.lost_events) = (taken.read, taken.lost);
        self.counts_before = counts;
        // Threads that were started during the burst and are still alive: their names are known only now.
        let known: HashSet<i32> = burst.threads.iter().map(|thread| thread.tid).collect();
        let threads = self.threads_in(&Family::now()).into_iter();
        burst.new_threads = threads
            .filter(|thread| !known.contains(&thread.tid))
            .collect();
        Ok(Some(burst))
    }

    /// Points the instances at the threads that live now; returns their processes.
    fn follow_threads(&self, family: &Family) -> Result<Vec<i32>, UserError> {
        let pids = self.targets(family)?;
        self.tracers.follow(&thread_ids_of(&pids), &self.clients)?;
        Ok(pids)
    }

    fn switch_on(&self) -> Result<Running, UserError> {
        self.follow_threads(&Family::now())?;
        self.tracers.enable()?;
        // Again, for threads that were started before their parents were followed.
        let family = Family::now();
        let pids = self.follow_threads(&family)?;
        let (watches, watching) = self.watch(&pids);
        let mut burst = self.surroundings(&family, &pids);
        let reader = Reader::start(self.tracers.pipes(), watches, &self.spool_dir);
        let reader = reader.map_err(|error| unreadable(&error))?;
        let servers = thread_ids_of(&family.with_descendants(&self.disk_server_pids));
        let cpu = CpuUse::now(reader.tid, &servers, family);
        self.tracers.record()?;
        burst.start_ns = monotonic_ns();
        Ok(Running {
            burst,
            reader,
            cpu,
            watching,
        })
    }

    /// Watches opens and replies from now on, so that no open is lost between the list of open files and the
    /// first event.
    fn watch(&self, pids: &[i32]) -> (Watches, Vec<Attachment>) {
        let (mut watches, mut watching) = (Watches::default(), Vec::new());
        if let Some(watch) = &self.open_watch
            && let Ok(attached) = watch.attach()
        {
            watching.extend(attached);
            watches.opens = Some((Arc::clone(watch), Paths::of(pids)));
        }
        if let Some(watch) = &self.reply_watch
            && let Ok(attached) = replies::attach(watch, pids)
        {
            watching.extend(attached);
            watches.replies = Some(Arc::clone(watch));
        }
        (watches, watching)
    }

    /// Threads, open files and calls under way as a burst begins.
    fn surroundings(&self, family: &Family, pids: &[i32]) -> RawBurst {
        let threads = self.threads_in(family);
        let files = pids.iter().flat_map(|&pid| processes::open_files(pid));
        let under_way = |thread: &LiveThread| {
            let (number, arguments) = processes::call_under_way(thread.pid, thread.tid)?;
            Some((thread.tid, EventKind::Enter { number, arguments }))
        };
        RawBurst {
            files: files.collect(),
            calls: threads.iter().filter_map(under_way).collect(),
            clients: self.clients.clone(),
            threads,
            ..RawBurst::default()
        }
    }
}

fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

// A thread that empties the kernel's buffers while a burst lasts.

/// Largest memory of a burst; a longer one is kept in a file.
const MEMORY_BYTES: usize = 64 << 20;
/// How often the kernel's buffers are emptied.
const POLL: Duration = Duration::from_millis(20);

/// Reads until it has to finish, or dropped.
pub struct Reader {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Heard>>>,
    /// Its id, so that its processor time can be distinguished from others'.
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
        let (sender, receiver) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("tierwise-reader".into())
            .spawn(move || {
                let _ = sender.send(gettid().as_raw_nonzero().get());
                read_until(&stopped, &pipes, watches, spool)
            })?;
        Ok(Self {
            stop,
            thread: Some(thread),
            tid: receiver.recv().unwrap_or_default(),
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
