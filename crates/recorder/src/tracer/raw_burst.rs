//! One burst in raw form: pages, the facts from `/proc` at its start, and the opens.

use std::collections::BTreeSet;

use super::decode::{self, Decoder};
use super::foreign::CpuTime;
use super::merge::Merge;
use super::opens::{Open, Opens};
use super::replies::{Replies, Reply};
use super::spool::Stream;
use crate::host::processes::{CallUnderWay, LiveThread, OpenFile};
use crate::{Event, EventKind};

/// A burst that is not decoded yet.
#[derive(Default)]
pub struct RawBurst {
    /// From, monotonic clock.
    pub start_ns: u64,
    /// To.
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
    pub(super) calls: Vec<CallUnderWay>,
    pub(super) opens: Vec<Open>,
    pub(super) replies: Vec<Reply>,
    pub(super) streams: Vec<Stream>,
}

/// Counts from decoding a burst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Events.
    pub events: u64,
    /// Files that were opened.
    pub opens: u64,
    /// Those among them whose path is not known.
    pub unresolved_opens: u64,
}

impl RawBurst {
    /// Number of bytes from the kernel.
    pub fn bytes(&self) -> u64 {
        self.streams.iter().map(Stream::bytes).sum()
    }

    /// Files that were open when it began or were opened in it, each once; no sockets and the like.
    pub fn paths(&self) -> BTreeSet<String> {
        let open = self.files.iter().map(|file| &file.path);
        let paths = open.chain(self.opens.iter().map(|open| &open.path));
        paths
            .filter(|path| path.starts_with('/'))
            .cloned()
            .collect()
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
        // A stranger that has ended cannot be told from a recorded process by then, but it has no thread
        // here.
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
        sink(edge(self.start_ns, EventKind::BurstStart));
        self.calls.iter().for_each(|call| sink(self.entered(call)));
        let streams = self.streams.iter().map(Stream::records).collect();
        for (stream, time_ns, record) in Merge::new(streams) {
            if !(self.start_ns..=self.end_ns).contains(&time_ns) {
                continue;
            }
            let cpu = self.streams[stream].cpu;
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
        sink(edge(self.end_ns, EventKind::BurstEnd));
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

    fn entered(&self, call: &CallUnderWay) -> Event {
        let kind = EventKind::Enter {
            number: call.number,
            arguments: call.arguments,
        };
        Event {
            time_ns: self.start_ns,
            cpu: 0,
            tid: call.tid,
            kind,
        }
    }
}

fn edge(time_ns: u64, kind: EventKind) -> Event {
    Event {
        time_ns,
        cpu: 0,
        tid: 0,
        kind,
    }
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
