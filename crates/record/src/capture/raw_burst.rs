//! One burst as it was taken: raw pages, what `/proc` told at its start, and the opens.

use std::collections::BTreeSet;

use super::decode::{self, Decoder};
use super::merge::Merge;
use super::opens::{Open, Opens};
use super::processes::{CallUnderWay, LiveThread, OpenFile};
use super::spool::Stream;
use crate::{Event, EventKind};

/// A burst that is not decoded yet.
#[derive(Default)]
pub struct RawBurst {
    /// From, monotonic clock.
    pub start_ns: u64,
    /// To.
    pub end_ns: u64,
    /// Events that the kernel gave; more than are decoded by those just before the start and after the end.
    pub events: u64,
    /// Events that the kernel dropped for want of room.
    pub lost_events: u64,
    /// Processor time of others than the traced threads, as a share of all cores.
    pub foreign_cpu_share: f64,
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
    pub(super) streams: Vec<Stream>,
}

impl RawBurst {
    /// How many bytes the kernel gave.
    pub fn bytes(&self) -> u64 {
        self.streams.iter().map(Stream::bytes).sum()
    }

    /// Processes whose open files are known.
    pub fn pids(&self) -> impl Iterator<Item = i32> {
        let pids: BTreeSet<i32> = self.files.iter().map(|file| file.pid).collect();
        pids.into_iter()
    }

    /// Gives its events to `sink` in order of time, between a start and an end; returns how many there were.
    pub fn decode(&self, decoder: &Decoder, mut sink: impl FnMut(Event)) -> u64 {
        let mut opens = Opens::new(&self.opens);
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
                self.attribute(&mut event, record);
                if let Some(opened) = opens.before(&event) {
                    sink(opened);
                }
                sink(event);
            }
        }
        sink(edge(self.end_ns, EventKind::BurstEnd));
        count
    }

    /// Who sends through the loopback wakes the receiver in a software interrupt, but by its own doing.
    fn attribute(&self, event: &mut Event, record: &[u8]) {
        if let EventKind::Waking {
            interrupt, woken, ..
        } = &mut event.kind
        {
            let client = |tid: &i32| self.clients.binary_search(tid).is_ok();
            let loopback = decode::in_soft_interrupt(record) && client(woken) != client(&event.tid);
            *interrupt = *interrupt && !loopback;
        }
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
