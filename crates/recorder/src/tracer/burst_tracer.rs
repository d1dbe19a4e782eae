//! Traces processes: programs in the kernel, attached for one burst at a time.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::kernel::{AttachedPrograms, LoadedPrograms, RecordCounts, RecordRings};
use super::opens::{OpenCall, PathResolver};
use super::raw_burst::{CoreRecordStream, RawBurst, StreamSpool};
use crate::UserError;
use crate::host::machine::{self, CpuUseSnapshot};
use crate::host::processes::{self, LiveThread, ProcessTree, thread_ids_of};
use crate::trace_event::TraceEventKind;

/// Where events come from and where they go.
pub struct TracerStorage {
    /// Ring of the kernel for records that are not taken yet, for each core; less on a machine with so many cores that they
    /// would take a sixteenth of the memory.
    pub buffer_bytes: u64,
    /// Directory of the nameless files in which long bursts wait to be decoded.
    pub spool_dir: PathBuf,
    /// Directory of the recording, empty or new.
    pub out: PathBuf,
}

/// A target that can be traced. Dropping it releases everything it took from the kernel.
pub struct BurstTracer {
    burst: Option<RunningBurst>,
    spool_dir: PathBuf,
    /// Processes to trace, with everything they start.
    pids: Vec<i32>,
    /// Servers of emulated disks, whose processor time is storage's, not foreign.
    disk_server_pids: Vec<i32>,
    programs: LoadedPrograms,
    rings: Arc<RecordRings>,
    clients: Vec<i32>,
    counts_before: RecordCounts,
}

/// A burst that is being taken.
struct RunningBurst {
    burst: RawBurst,
    reader: RingReader,
    cpu: CpuUseSnapshot,
    attached: AttachedPrograms,
}

impl BurstTracer {
    /// Prepares to trace; nothing is attached yet.
    pub fn attach(
        places: &TracerStorage,
        pids: Vec<i32>,
        disk_server_pids: Vec<i32>,
    ) -> Result<Self, UserError> {
        let (programs, rings) = LoadedPrograms::load(places.buffer_bytes)?;
        let tracer = Self {
            spool_dir: places.spool_dir.clone(),
            pids,
            disk_server_pids,
            programs,
            rings: Arc::new(rings),
            clients: Vec::new(),
            counts_before: RecordCounts::default(),
            burst: None,
        };
        tracer.targets(&ProcessTree::now())?;
        Ok(tracer)
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
    fn threads_in(&self, family: &ProcessTree) -> Vec<LiveThread> {
        let pids = family.with_descendants(&self.pids);
        let mut threads: Vec<_> = pids.into_iter().flat_map(processes::live_threads).collect();
        let clients = self.clients.iter();
        threads.extend(clients.filter_map(|&tid| processes::live_thread(tid)));
        threads
    }

    fn targets(&self, family: &ProcessTree) -> Result<Vec<i32>, UserError> {
        let pids = family.with_descendants(&self.pids);
        if pids.is_empty() {
            return Err(UserError::new(
                "the process to record does not run",
                "start the database first, or give the pid of one that runs",
            ));
        }
        Ok(pids)
    }

    /// Attaches; later events belong to the burst.
    pub fn begin(&mut self) -> Result<(), UserError> {
        self.burst = Some(self.switch_on()?);
        Ok(())
    }

    pub fn in_burst(&self) -> bool {
        self.burst.is_some()
    }

    /// Events since [`Self::begin`], taken or lost.
    pub fn events(&self) -> u64 {
        let counts = self.rings.counts() - self.counts_before;
        counts.taken + counts.lost
    }

    /// Detaches, and takes the data recorded since [`Self::begin`]; none if it was not called.
    pub fn end(&mut self) -> Result<Option<RawBurst>, UserError> {
        let Some(running) = self.burst.take() else {
            return Ok(None);
        };
        let mut burst = running.burst;
        burst.end_ns = monotonic_ns();
        burst.cpu = running.cpu.since();
        drop(running.attached);
        let taken = running.reader.finish();
        let taken = taken.map_err(|error| unreadable_rings_error(&error))?;
        burst.streams = taken.streams;
        burst.hear(taken.opens);
        let counts = self.rings.counts();
        let new = counts - self.counts_before;
        (burst.events, burst.lost_events) = (new.taken, new.lost);
        self.counts_before = counts;
        // Threads that were started during the burst and are still alive: their names are known only now.
        let known: HashSet<i32> = burst.threads.iter().map(|thread| thread.tid).collect();
        let threads = self.threads_in(&ProcessTree::now()).into_iter();
        burst.new_threads = threads
            .filter(|thread| !known.contains(&thread.tid))
            .collect();
        Ok(Some(burst))
    }

    fn switch_on(&mut self) -> Result<RunningBurst, UserError> {
        let pids = self.targets(&ProcessTree::now())?;
        self.programs.follow(&thread_ids_of(&pids), &self.clients);
        self.rings.forget_interrupts();
        let attached = self.programs.attach()?;
        // Again, for threads that were started before their parents were followed.
        let family = ProcessTree::now();
        let pids = self.targets(&family)?;
        self.programs.add(&thread_ids_of(&pids), &self.clients);
        let mut burst = self.surroundings(&family, &pids);
        let rings = Arc::clone(&self.rings);
        let reader = RingReader::start(rings, PathResolver::of(&pids), &self.spool_dir);
        let reader = reader.map_err(|error| unreadable_rings_error(&error))?;
        let servers = thread_ids_of(&family.with_descendants(&self.disk_server_pids));
        let cpu = CpuUseSnapshot::now(reader.tid, &servers, family);
        burst.start_ns = monotonic_ns();
        Ok(RunningBurst {
            burst,
            reader,
            cpu,
            attached,
        })
    }

    /// Threads, open files and calls under way as a burst begins.
    fn surroundings(&self, family: &ProcessTree, pids: &[i32]) -> RawBurst {
        let threads = self.threads_in(family);
        let files = pids.iter().flat_map(|&pid| processes::open_files(pid));
        let under_way = |thread: &LiveThread| {
            let (number, arguments) = processes::call_under_way(thread.pid, thread.tid)?;
            Some((thread.tid, TraceEventKind::Enter { number, arguments }))
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

// A thread that empties the kernel's rings while a burst lasts.

/// Largest memory of a burst; a longer one is kept in a file.
const MEMORY_BYTES: usize = 64 << 20;
/// How often the rings are emptied.
const POLL: Duration = Duration::from_millis(20);
/// How long a record that was claimed may take to be complete, once nothing is attached.
const LAST: Duration = Duration::from_millis(2);

/// Reads until it has to finish, or dropped.
pub struct RingReader {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<RingData>>>,
    /// Its id, so that its processor time can be distinguished from others'.
    pub tid: i32,
}

/// Data from a reader, each in order of time.
#[derive(Default)]
pub struct RingData {
    pub streams: Vec<CoreRecordStream>,
    pub opens: Vec<OpenCall>,
}

impl RingReader {
    /// Begins to empty the rings, again and again.
    fn start(rings: Arc<RecordRings>, paths: PathResolver, spool_dir: &Path) -> io::Result<Self> {
        let spool = StreamSpool::new(MEMORY_BYTES, spool_dir)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let read = move || read_rings_until(&stopped, &rings, paths, spool);
        let (thread, tid) = machine::spawn_thread_with_id("tierwise-reader", read)?;
        Ok(Self {
            stop,
            thread: Some(thread),
            tid,
        })
    }

    /// Everything that was read, with the rest that is still there; nothing may be attached.
    pub fn finish(mut self) -> io::Result<RingData> {
        self.join()
    }

    fn join(&mut self) -> io::Result<RingData> {
        self.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else {
            return Ok(RingData::default());
        };
        thread.thread().unpark();
        thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the reader ended")))
    }
}

impl Drop for RingReader {
    fn drop(&mut self) {
        // A caller that drops it does not want the data.
        let _ = self.join();
    }
}

fn read_rings_until(
    stopped: &AtomicBool,
    rings: &RecordRings,
    mut paths: PathResolver,
    mut spool: StreamSpool,
) -> io::Result<RingData> {
    let mut taken = RingData {
        streams: (0..rings.cores).map(CoreRecordStream::new).collect(),
        opens: Vec::new(),
    };
    loop {
        // Read the flag first: events from before it was set are then read after it was seen.
        let last = stopped.load(Ordering::Acquire);
        if last {
            thread::sleep(LAST);
        }
        let mut kept = Ok(());
        rings.drain(
            |core, record| {
                if kept.is_ok() {
                    kept = taken.streams[usize::from(core)].push(record, &mut spool);
                }
            },
            |open| taken.opens.extend(OpenCall::heard(open, &mut paths)),
        );
        kept?;
        if last {
            spool.finish(&mut taken.streams)?;
            taken.opens.sort_by_key(|open| open.time_ns);
            return Ok(taken);
        }
        thread::park_timeout(POLL);
    }
}

/// Events could not be moved from the kernel to the file that keeps them.
fn unreadable_rings_error(error: &io::Error) -> UserError {
    let (what, fix) = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => (
            "write the recording",
            "free space there, record for a shorter time or less often (--duty), or name another directory",
        ),
        _ => (
            "keep the events",
            "name a directory on a file system that works",
        ),
    };
    UserError::new(format!("cannot {what}: {error}"), fix)
}
