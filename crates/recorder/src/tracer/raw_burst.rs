//! One burst in raw form: pages, the facts from `/proc` at its start, and the opens.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use itertools::Itertools;

use super::decode::{self, Decoder};
use super::opens::{Open, Opens};
use super::replies::{Replies, Reply};
use super::spool::Stream;
use crate::event::{Event, EventKind};
use crate::host::cpu::CpuTime;
use crate::host::processes::{self, LiveThread, OpenFile};

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
    pub cpu: CpuTime,
    /// Threads alive when it began; clients too.
    pub threads: Vec<LiveThread>,
    /// Threads that were started in it, and are alive after it.
    pub new_threads: Vec<LiveThread>,
    /// Threads among them that are clients, sorted.
    pub clients: Vec<i32>,
    /// Files open when it began.
    pub files: Vec<OpenFile>,
    /// Calls that threads were in when it began.
    pub(super) calls: Vec<(i32, EventKind)>,
    pub(super) opens: Vec<Open>,
    pub(super) replies: Vec<Reply>,
    pub(super) streams: Vec<Stream>,
}

/// Counts from decoding a burst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
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
        self.streams.iter().map(Stream::bytes).sum()
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
    pub(super) fn hear(&mut self, opens: Vec<Open>) {
        let (before, during) = opens
            .into_iter()
            .partition(|open| open.time_ns < self.start_ns);
        self.opens = during;
        // A stranger that has ended cannot be told from a recorded process by then, but it has no thread here.
        let targets = self.targets();
        let ours = |open: &Open| targets.binary_search(&open.tid).is_ok();
        let open_file = |open: Open| {
            Some(OpenFile {
                pid: open.pid,
                fd: i32::try_from(open.result).ok()?,
                path: open.path,
            })
        };
        let before: Vec<Open> = before;
        let known = before.into_iter().filter(ours).filter_map(open_file);
        self.files.extend(known);
    }

    /// Passes its events to `sink` in order of time, between a start and an end.
    pub fn decode(&self, decoder: &Decoder, mut sink: impl FnMut(Event)) -> Decoded {
        let mut opens = Opens::new(&self.opens);
        let mut replies = Replies::new(&self.replies);
        let targets = self.targets();
        let mut count = 0;
        let untraced = |time_ns: u64, tid: i32, kind: EventKind| Event {
            time_ns,
            cpu: 0,
            tid,
            kind,
        };
        sink(untraced(self.start_ns, 0, EventKind::BurstStart));
        for (tid, entered) in &self.calls {
            sink(untraced(self.start_ns, *tid, entered.clone()));
        }
        for (time_ns, cpu, record) in merged(&self.streams) {
            if !(self.start_ns..=self.end_ns).contains(&time_ns) {
                continue;
            }
            if let Some(mut event) = decoder.decode(cpu, time_ns, record) {
                count += 1;
                attribute(&mut event, record, &targets, &self.clients);
                if let Some(opened) = opens.before(&event) {
                    sink(opened);
                }
                replies.before(&event).map(&mut sink);
                sink(event);
            }
        }
        sink(untraced(self.end_ns, 0, EventKind::BurstEnd));
        Decoded {
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
pub(super) fn merged(streams: &[Stream]) -> impl Iterator<Item = (u64, u16, &[u8])> {
    let numbered = streams.iter().enumerate().map(|(number, stream)| {
        let records = stream.records();
        records.map(move |(time_ns, record)| ((time_ns, number), stream.cpu, record))
    });
    let merged = numbered.kmerge_by(|one, other| one.0 < other.0);
    merged.map(|((time_ns, _), cpu, record)| (time_ns, cpu, record))
}

/// A sender on the loopback wakes the receiver in a software interrupt, but by its own doing. This holds
/// where one of them is a target's and the other a client, or the clients are not known yet.
fn attribute(event: &mut Event, record: &[u8], targets: &[i32], clients: &[i32]) {
    if let EventKind::Waking {
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
        *interrupt = *interrupt && !(loopback && decode::in_soft_interrupt(record));
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
pub fn clients_in(burst: &RawBurst, decoder: &Decoder) -> Vec<i32> {
    let own = burst.targets();
    let is_own = |tid: i32| own.binary_search(&tid).is_ok();
    let (mut asked, mut answered) = (HashMap::<i32, u32>::new(), HashSet::new());
    burst.decode(decoder, |event| {
        if let EventKind::Waking {
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
