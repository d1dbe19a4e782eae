//! Synthetic events, as the kernel was seen to send them.

mod requests;
mod scheduling;

use std::ops::Range;

use tierwise_recording::{BurstRows, StateKind, ThreadClass};

use super::{DeviceRange, Timeline};
use crate::trace_event::{SwitchedOutState, TraceEvent, TraceEventKind};

/// Two processes of one thread each, tids 10 and 20; a device, if no others are given.
struct Script {
    timeline: Timeline,
}

/// A device of 1,000,000 sectors on the one disk.
fn range(device: u32, first_sector: u64) -> DeviceRange {
    DeviceRange {
        number: 7 << 20,
        first_sector,
        sectors: 1_000_000,
        offset_sectors: 0,
        device,
    }
}

impl Script {
    fn new() -> Self {
        Self::with(vec![range(0, 0)])
    }

    fn with(ranges: Vec<DeviceRange>) -> Self {
        let mut timeline = Timeline::new(ranges);
        timeline.see_thread(10, 10, "ten", ThreadClass::Session);
        timeline.see_thread(20, 20, "twenty", ThreadClass::Session);
        let mut script = Self { timeline };
        script.at(0, 0, 0, TraceEventKind::BurstStart);
        script
    }

    fn at(&mut self, time_ns: u64, cpu: u16, tid: i32, kind: TraceEventKind) {
        self.timeline.push(TraceEvent {
            time_ns,
            cpu,
            tid,
            kind,
        });
    }

    fn enter(&mut self, time_ns: u64, tid: i32, number: libc::c_long, arguments: &[u64]) {
        let kind = TraceEventKind::Enter {
            number: number as u32,
            arguments: std::array::from_fn(|at| arguments.get(at).copied().unwrap_or(0)),
        };
        self.at(time_ns, 0, tid, kind);
    }

    fn exit(&mut self, time_ns: u64, tid: i32, number: libc::c_long, result: i64) {
        let number = number as u32;
        self.at(time_ns, 0, tid, TraceEventKind::Exit { number, result });
    }

    /// Enters a call and leaves it, without anything between.
    fn call(
        &mut self,
        time_ns: Range<u64>,
        tid: i32,
        number: libc::c_long,
        arguments: &[u64],
        result: i64,
    ) {
        self.enter(time_ns.start, tid, number, arguments);
        self.exit(time_ns.end, tid, number, result);
    }

    fn switch(
        &mut self,
        time_ns: u64,
        cpu: u16,
        previous: i32,
        state: SwitchedOutState,
        next: i32,
    ) {
        let kind = TraceEventKind::Switch {
            previous,
            state,
            next,
        };
        self.at(time_ns, cpu, previous, kind);
    }

    fn wake(&mut self, time_ns: u64, waker: i32, woken: i32, target: u16) {
        let kind = TraceEventKind::Waking {
            woken,
            target,
            interrupt: false,
        };
        self.at(time_ns, 0, waker, kind);
    }

    /// Opens `path` as `fd` in one go.
    fn open(&mut self, time_ns: u64, tid: i32, fd: i32, path: &str) {
        self.enter(time_ns, tid, libc::SYS_openat, &[0, 0, 0]);
        let path = path.to_owned();
        self.at(time_ns, 0, tid, TraceEventKind::Opened { fd, path });
        self.exit(time_ns + 1, tid, libc::SYS_openat, i64::from(fd));
    }

    fn end(&mut self, time_ns: u64) -> BurstRows {
        self.at(time_ns, 0, 0, TraceEventKind::BurstEnd);
        self.timeline.finish_burst()
    }
}

/// The states of a thread as (start, end, kind), after a check that they have no gap.
fn states_of(rows: &BurstRows, thread: u32) -> Vec<(u64, u64, StateKind)> {
    let states = rows.states.iter().filter(|state| state.thread == thread);
    let states = states.map(|state| (state.start_ns, state.end_ns, state.kind));
    let states: Vec<_> = states.collect();
    for pair in states.windows(2) {
        assert_eq!(pair[0].1, pair[1].0, "a gap in {states:?}");
    }
    states
}
