//! One burst in raw form: records, the facts from `/proc` at its start, and the opens.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use itertools::Itertools;
use memmap2::Mmap;

use super::kernel_record::{KernelRecord, REPLY};
use super::opens::{OpenCall, OpenCalls};
use super::replies::WaitingReplies;
use crate::host::machine::BurstCpuTime;
use crate::host::processes::{self, LiveThread, OpenFile};
use crate::trace_event::{TraceEvent, TraceEventKind};

/// A burst that is not decoded yet.
#[derive(Default)]
pub struct RawBurst {
    /// From, monotonic clock.
    pub start_ns: u64,
    pub end_ns: u64,
    /// Events from the kernel; a few just before the start and after the end are not decoded.
    pub events: u64,
    /// Events that the kernel dropped for lack of space.
    pub lost_events: u64,
    /// Processor time in it, of the traced threads too.
    pub cpu: BurstCpuTime,
    /// Threads alive when it began; clients too.
    pub threads: Vec<LiveThread>,
    /// Threads that were started in it, and are alive after it.
    pub new_threads: Vec<LiveThread>,
    /// Threads among them that are clients, sorted.
    pub clients: Vec<i32>,
    /// Files open when it began.
    pub files: Vec<OpenFile>,
    /// Calls that threads were in when it began.
    pub(super) calls: Vec<(i32, TraceEventKind)>,
    pub(super) opens: Vec<OpenCall>,
    pub(super) streams: Vec<CoreRecordStream>,
}

/// Counts from decoding a burst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecodedCounts {
    pub events: u64,
    pub opens: u64,
    /// Those among them whose path is not known.
    pub unresolved_opens: u64,
}

/// A burst that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BurstSummary {
    /// Clients of the database.
    pub clients: usize,
    /// Events taken.
    pub events: u64,
    /// Bytes from the kernel.
    pub bytes: u64,
    /// How long it was: on a busy machine longer than asked for.
    pub length: Duration,
}

impl RawBurst {
    /// With this number of clients.
    pub fn summary(&self, clients: usize) -> BurstSummary {
        BurstSummary {
            clients,
            events: self.events,
            bytes: self.bytes(),
            length: Duration::from_nanos(self.end_ns.saturating_sub(self.start_ns)),
        }
    }

    pub fn bytes(&self) -> u64 {
        self.streams.iter().map(CoreRecordStream::bytes).sum()
    }

    /// Files that were open when it began or were opened in it, each once; no sockets and the like.
    pub fn paths(&self) -> BTreeSet<&str> {
        let open = self.files.iter().map(|file| &file.path[..]);
        let paths = open.chain(self.opens.iter().map(|open| &open.path[..]));
        paths.filter(|path| path.starts_with('/')).collect()
    }

    /// Processes whose open files are known.
    pub fn pids(&self) -> impl Iterator<Item = i32> {
        let pids: BTreeSet<i32> = self.files.iter().map(|file| file.pid).collect();
        pids.into_iter()
    }

    /// Adds opens; those before its start say what was open then.
    pub(super) fn hear(&mut self, opens: Vec<OpenCall>) {
        let (before, during) = opens
            .into_iter()
            .partition(|open| open.time_ns < self.start_ns);
        self.opens = during;
        // A stranger that has ended cannot be distinguished from a recorded process by then, but it has no thread here.
        let targets = self.targets();
        let ours = |open: &OpenCall| targets.binary_search(&open.tid).is_ok();
        let open_file = |open: OpenCall| {
            Some(OpenFile {
                pid: open.pid,
                fd: i32::try_from(open.result).ok()?,
                path: open.path,
            })
        };
        let before: Vec<OpenCall> = before;
        let known = before.into_iter().filter(ours).filter_map(open_file);
        self.files.extend(known);
    }

    /// Passes its events to `sink` in order of time, between a start and an end.
    pub fn decode(&self, mut sink: impl FnMut(TraceEvent)) -> DecodedCounts {
        let mut opens = OpenCalls::new(&self.opens);
        let mut replies = WaitingReplies::default();
        let targets = self.targets();
        let mut count = 0;
        let untraced = |time_ns: u64, tid: i32, kind: TraceEventKind| TraceEvent {
            time_ns,
            cpu: 0,
            tid,
            kind,
        };
        sink(untraced(self.start_ns, 0, TraceEventKind::BurstStart));
        for (tid, entered) in &self.calls {
            sink(untraced(self.start_ns, *tid, entered.clone()));
        }
        for (cpu, record) in merged_records(&self.streams) {
            if !(self.start_ns..=self.end_ns).contains(&record.time_ns) {
                continue;
            }
            if record.kind == REPLY {
                replies.begin(record);
            } else if let Some(mut event) = record.event(cpu) {
                count += 1;
                attribute_wakeup(&mut event, record, &targets, &self.clients);
                if let Some(opened) = opens.before(&event) {
                    sink(opened);
                }
                replies.before(&event).map(&mut sink);
                sink(event);
            }
        }
        sink(untraced(self.end_ns, 0, TraceEventKind::BurstEnd));
        DecodedCounts {
            events: count,
            opens: opens.seen,
            unresolved_opens: opens.unresolved,
        }
    }

    /// Threads that were the target's own when it began or ended, sorted.
    pub(super) fn targets(&self) -> Vec<i32> {
        let threads = self.threads.iter().chain(&self.new_threads);
        let mut tids: Vec<i32> = threads.map(|thread| thread.tid).collect();
        tids.retain(|tid| self.clients.binary_search(tid).is_err());
        tids.sort_unstable();
        tids
    }
}

/// The records of all streams by time, each with its core; of equal times, those of the earlier stream first.
pub(super) fn merged_records(
    streams: &[CoreRecordStream],
) -> impl Iterator<Item = (u16, &KernelRecord)> {
    let numbered = streams.iter().enumerate().map(|(number, stream)| {
        let records = stream.records();
        records.map(move |record| ((record.time_ns, number), stream.cpu, record))
    });
    let merged = numbered.kmerge_by(|one, other| one.0 < other.0);
    merged.map(|(_, cpu, record)| (cpu, record))
}

/// A sender on the loopback wakes the receiver in a software interrupt, but by its own doing. This holds
/// where one of them is a target's and the other a client, or the clients are not known yet.
fn attribute_wakeup(
    event: &mut TraceEvent,
    record: &KernelRecord,
    targets: &[i32],
    clients: &[i32],
) {
    if let TraceEventKind::Waking {
        interrupt, woken, ..
    } = &mut event.kind
    {
        let own = |tid: i32| targets.binary_search(&tid).is_ok();
        let client = |tid: i32| match clients {
            [] => tid != 0 && !own(tid),
            _ => clients.binary_search(&tid).is_ok(),
        };
        let pair = |one: i32, other: i32| own(one) && client(other);
        let loopback = pair(*woken, event.tid) || pair(event.tid, *woken);
        *interrupt = *interrupt && !(loopback && record.in_soft_interrupt());
    }
}

/// A thread that wakes once may be no client: a parent, a timer's owner.
const LEAST_WAKES: u32 = 2;

/// A thread that wakes this many times less than the busiest was interrupted, or has no part in the work.
const BUSIEST_OVER_LEAST: u32 = 20;

/// Ids of the clients on the same machine that a burst shows, sorted: threads that wake the target's threads and are
/// woken by them, and belong neither to it nor to the kernel.
///
/// Both, since an interrupt may use any thread's time to wake a session whose request is done.
pub fn client_threads_in_burst(burst: &RawBurst) -> Vec<i32> {
    let own = burst.targets();
    let is_own = |tid: i32| own.binary_search(&tid).is_ok();
    let (mut asked, mut answered) = (HashMap::<i32, u32>::new(), HashSet::new());
    burst.decode(|event| {
        if let TraceEventKind::Waking {
            woken,
            interrupt: false,
            ..
        } = event.kind
        {
            match (is_own(event.tid), is_own(woken)) {
                (false, true) => *asked.entry(event.tid).or_default() += 1,
                (true, false) => _ = answered.insert(woken),
                _ => {}
            }
        }
    });
    let most = asked.values().copied().max().unwrap_or(0);
    let least = LEAST_WAKES.max(most / BUSIEST_OVER_LEAST);
    asked.retain(|&tid, wakes| {
        let talks = *wakes >= least && answered.contains(&tid);
        tid != 0 && talks && !processes::is_kernel_thread(tid)
    });
    asked.into_keys().sorted_unstable().collect()
}

// The records of one burst by core, to be decoded later.

/// Records are kept in pieces of this number, so that growing never copies.
const CHUNK_RECORDS: usize = 1 << 14;

/// Records of one core, by time.
#[derive(Default)]
pub struct CoreRecordStream {
    pub cpu: u16,
    full: Vec<StreamChunk>,
    last: Vec<KernelRecord>,
    stored: Option<Arc<Mmap>>,
}

enum StreamChunk {
    Memory(Vec<KernelRecord>),
    /// Place in the spool's file, in records.
    File {
        first: usize,
        records: usize,
    },
}

/// Storage for pieces of streams: memory, and beyond a limit a file without a name, that ends with its burst.
pub struct StreamSpool {
    memory_left: usize,
    file: File,
    written: usize,
}

impl StreamSpool {
    /// Keeps up to `memory` bytes in memory, the rest in a file of `directory`.
    pub fn new(memory: usize, directory: &Path) -> io::Result<Self> {
        Ok(Self {
            memory_left: memory,
            file: unnamed_file(directory)?,
            written: 0,
        })
    }

    fn keep(&mut self, records: Vec<KernelRecord>) -> io::Result<StreamChunk> {
        let bytes = records_as_bytes(&records);
        if let Some(left) = self.memory_left.checked_sub(bytes.len()) {
            self.memory_left = left;
            return Ok(StreamChunk::Memory(records));
        }
        self.file.write_all(bytes)?;
        let first = self.written;
        self.written += records.len();
        Ok(StreamChunk::File {
            first,
            records: records.len(),
        })
    }

    /// Lets streams read what is in the file.
    pub fn finish(self, streams: &mut [CoreRecordStream]) -> io::Result<()> {
        if self.written == 0 {
            return Ok(());
        }
        // SAFETY: the file has no name, and nobody writes to it any more.
        let mapping = Arc::new(unsafe { Mmap::map(&self.file) }?);
        for stream in streams {
            stream.stored = Some(Arc::clone(&mapping));
        }
        Ok(())
    }
}

fn records_as_bytes(records: &[KernelRecord]) -> &[u8] {
    // SAFETY: a record has no bytes between its fields.
    unsafe { std::slice::from_raw_parts(records.as_ptr().cast(), size_of_val(records)) }
}

fn records_of_bytes(bytes: &[u8]) -> &[KernelRecord] {
    // SAFETY: a record takes any bytes; what is not a whole one, or not aligned, is not among those taken.
    let (before, records, _) = unsafe { bytes.align_to::<KernelRecord>() };
    assert!(before.is_empty(), "a mapping begins at a page");
    records
}

/// A file that is gone when it is closed, however its program ends.
fn unnamed_file(directory: &Path) -> io::Result<File> {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let path = directory.join(format!("events-{}-{number}", std::process::id()));
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    fs::remove_file(path)?;
    Ok(file)
}

impl CoreRecordStream {
    pub fn new(cpu: u16) -> Self {
        Self {
            cpu,
            ..Self::default()
        }
    }

    /// Appends a record. One that an interrupt made while an earlier one was being filled comes too early.
    pub fn push(&mut self, record: KernelRecord, spool: &mut StreamSpool) -> io::Result<()> {
        if self.last.len() == self.last.capacity() {
            let empty = Vec::with_capacity(CHUNK_RECORDS);
            let full = std::mem::replace(&mut self.last, empty);
            self.full.push(spool.keep(full)?);
        }
        let later = self.last.iter().rev();
        let later = later.take_while(|other| other.time_ns > record.time_ns);
        self.last.insert(self.last.len() - later.count(), record);
        Ok(())
    }

    pub fn bytes(&self) -> u64 {
        let pieces = self.chunks().map(size_of_val);
        pieces.sum::<usize>() as u64
    }

    pub fn records(&self) -> impl Iterator<Item = &KernelRecord> {
        self.chunks().flatten()
    }

    fn chunks(&self) -> impl Iterator<Item = &[KernelRecord]> {
        let full = self.full.iter().map(|chunk| match chunk {
            StreamChunk::Memory(records) => &records[..],
            StreamChunk::File { first, records } => match &self.stored {
                Some(mapping) => &records_of_bytes(mapping)[*first..][..*records],
                None => &[],
            },
        });
        full.chain([&self.last[..]])
    }
}
