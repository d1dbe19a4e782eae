//! States of one thread, without a gap, and the thread on each core, by its switches.

use std::collections::BTreeMap;
use std::mem;

use tierwise_recording::{Call, CallKind, NONE, State, StateKind, TransactionStatus};

use super::syscalls::CallShape;
use crate::trace_event::SwitchedOutState;

#[derive(Clone, Copy, Debug)]
pub(super) struct CallUnderWay {
    pub number: u32,
    pub arguments: [u64; 4],
    pub shape: CallShape,
    /// Where it lies among the calls of its thread.
    pub index: u32,
    /// File number whose path the tracer reported in this call.
    pub opened: Option<i32>,
}

impl CallUnderWay {
    pub(super) fn fd(&self, argument: usize) -> i32 {
        self.arguments[argument] as i32
    }
}

/// State of a thread at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadPhase {
    /// Nothing since the burst began.
    Unseen,
    /// On a core.
    Cpu,
    /// Could run.
    Runnable,
    /// Left its core to wait, and was not woken yet.
    Blocked,
    /// Ended, or not yet born.
    Gone,
}

/// The time of one thread in one burst. Calls are numbered from 0 within it.
#[derive(Debug)]
pub(super) struct ThreadTrack {
    pub thread: u32,
    pub tid: i32,
    pub phase: ThreadPhase,
    pub since_ns: u64,
    pub cpu: u16,
    pub states: Vec<State>,
    pub calls: Vec<Call>,
    pub underway: Option<CallUnderWay>,
    /// The call it was in when the present phase began.
    call_before: u32,
    /// A waking that came while it was still on its core, by this thread.
    woken_early: Option<u32>,
    /// Whether it entered or left a call yet.
    pub acted: bool,
    /// Whether it left its core to wait for a device, as in a page fault.
    for_device: bool,
    /// Its last wait outside of a call, and for no device, since it last entered or left one; an index of `states`.
    pub waited: Option<usize>,
    /// When the call under way began to send, and how its data ends.
    pub replied: Option<(u64, TransactionStatus)>,
    /// Whether it began within the burst.
    pub born: bool,
    /// Whether the thread is known to live in this burst.
    pub alive: bool,
    /// Events that contradict what was known.
    pub contradictions: u64,
}

impl ThreadTrack {
    /// Of a thread that is in this phase from now on.
    pub(super) fn new(thread: u32, tid: i32, phase: ThreadPhase, time_ns: u64) -> Self {
        Self {
            thread,
            tid,
            phase,
            since_ns: time_ns,
            cpu: 0,
            states: Vec::new(),
            calls: Vec::new(),
            underway: None,
            call_before: NONE,
            woken_early: None,
            acted: false,
            for_device: false,
            waited: None,
            replied: None,
            born: false,
            alive: true,
            contradictions: 0,
        }
    }

    /// A burst begins: nothing is known but where the thread ran last.
    pub(super) fn begin(&mut self, time_ns: u64) {
        *self = Self {
            cpu: self.cpu,
            alive: self.alive,
            states: mem::take(&mut self.states),
            calls: mem::take(&mut self.calls),
            ..Self::new(self.thread, self.tid, ThreadPhase::Unseen, time_ns)
        };
    }

    /// The call it is in, or [`NONE`].
    fn call(&self) -> u32 {
        self.underway.map_or(NONE, |call| call.index)
    }

    /// What the call that it is in asks, and of which file.
    pub(super) fn kind_and_file(&self) -> Option<(CallKind, u32)> {
        let row = self.calls.get(self.underway?.index as usize)?;
        Some((row.kind, row.file))
    }

    fn enter_phase(&mut self, phase: ThreadPhase, time_ns: u64) {
        self.phase = phase;
        self.since_ns = time_ns;
        self.call_before = self.call();
    }

    /// Ends the present phase, as `kind`.
    fn push(&mut self, kind: StateKind, end_ns: u64, waker: u32) {
        if end_ns <= self.since_ns {
            return;
        }
        let call = self.call();
        let whole = self.call_before == call;
        if kind == StateKind::Blocked && whole && call == NONE && !self.for_device {
            self.waited = Some(self.states.len());
        }
        self.states.push(State {
            thread: self.thread,
            start_ns: self.since_ns,
            end_ns,
            kind,
            cpu: self.cpu,
            waker,
            call: if whole { call } else { NONE },
        });
        self.since_ns = end_ns;
    }

    /// The thread is seen running: without a reported switch, one is inferred.
    pub(super) fn runs(&mut self, time_ns: u64, cpu: u16, cores: &mut CoreStates) {
        match self.phase {
            ThreadPhase::Cpu => {
                self.contradictions += u64::from(self.cpu != cpu);
                self.cpu = cpu;
                return;
            }
            ThreadPhase::Gone => return,
            ThreadPhase::Unseen => {}
            ThreadPhase::Blocked if self.woken_early.is_none() => {
                self.contradictions += 1;
                self.push(StateKind::Blocked, time_ns, NONE);
            }
            ThreadPhase::Blocked | ThreadPhase::Runnable => {
                let arrival = cores.infer_arrival(cpu, self.tid, self.since_ns, time_ns);
                self.push(StateKind::Runnable, arrival, NONE);
            }
        }
        self.cpu = cpu;
        self.woken_early = None;
        let since_ns = self.since_ns;
        self.enter_phase(ThreadPhase::Cpu, since_ns);
    }

    /// A switch brings the thread to a core.
    pub(super) fn arrives(&mut self, time_ns: u64, cpu: u16) {
        match self.phase {
            ThreadPhase::Gone => return,
            ThreadPhase::Cpu => {
                self.contradictions += 1;
                self.push(StateKind::Cpu, time_ns, NONE);
            }
            ThreadPhase::Blocked if self.woken_early.is_none() => {
                self.contradictions += 1;
                self.push(StateKind::Blocked, time_ns, NONE);
            }
            _ => self.push(StateKind::Runnable, time_ns, NONE),
        }
        self.cpu = cpu;
        self.woken_early = None;
        self.enter_phase(ThreadPhase::Cpu, time_ns);
    }

    /// A switch takes it off its core.
    pub(super) fn leaves(&mut self, time_ns: u64, state: SwitchedOutState) {
        if self.phase == ThreadPhase::Gone {
            return;
        }
        self.push(StateKind::Cpu, time_ns, NONE);
        self.for_device = state == SwitchedOutState::Disk;
        let next = match state {
            SwitchedOutState::Runnable => ThreadPhase::Runnable,
            SwitchedOutState::Dead => ThreadPhase::Gone,
            SwitchedOutState::Sleeping | SwitchedOutState::Disk | SwitchedOutState::Stopped => {
                ThreadPhase::Blocked
            }
        };
        if next != ThreadPhase::Blocked {
            self.woken_early = None;
        }
        self.enter_phase(next, time_ns);
    }

    /// Another thread wakes it. A waking is reported before the lock of the core is taken, so it may come
    /// before the switch that it answers; it is kept until then.
    pub(super) fn woken(&mut self, time_ns: u64, target: u16, waker: u32) {
        match self.phase {
            ThreadPhase::Unseen | ThreadPhase::Blocked => {
                self.push(StateKind::Blocked, time_ns, waker);
                self.cpu = target;
                self.woken_early = None;
                self.enter_phase(ThreadPhase::Runnable, time_ns);
            }
            ThreadPhase::Cpu => self.woken_early = Some(waker),
            ThreadPhase::Runnable | ThreadPhase::Gone => {}
        }
    }

    /// A system call begins or ends: what woke the thread before has been answered.
    pub(super) fn acts(&mut self) {
        self.woken_early = None;
        self.waited = None;
        self.replied = None;
        self.acted = true;
    }

    /// The call just entered began before the burst.
    pub(super) fn was_in_call(&mut self) {
        self.call_before = self.call();
    }

    /// Takes back a call that turned out to matter to nobody, if none came after it.
    pub(super) fn drop_last_call(&mut self, call: u32) {
        if call as usize + 1 == self.calls.len() {
            self.calls.pop();
            if self.call_before == call {
                self.call_before = NONE;
            }
        }
    }

    pub(super) fn dies(&mut self, time_ns: u64) {
        if self.phase != ThreadPhase::Gone {
            self.push(StateKind::Cpu, time_ns, NONE);
            self.phase = ThreadPhase::Gone;
        }
    }

    pub(super) fn end(&mut self, time_ns: u64) {
        match self.phase {
            ThreadPhase::Cpu => self.push(StateKind::Cpu, time_ns, NONE),
            ThreadPhase::Runnable => self.push(StateKind::Runnable, time_ns, NONE),
            ThreadPhase::Blocked if self.woken_early.is_some() => {
                self.push(StateKind::Runnable, time_ns, NONE);
            }
            ThreadPhase::Blocked => self.push(StateKind::Blocked, time_ns, NONE),
            ThreadPhase::Unseen if self.alive => self.push(StateKind::Blocked, time_ns, NONE),
            ThreadPhase::Unseen | ThreadPhase::Gone => {}
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct CoreState {
    /// Thread that runs, if the last switch named it; 0 is the idle one.
    running: Option<i32>,
    /// When that switch was.
    since_ns: u64,
    /// Switches to threads that were seen, and those away from the idle thread among them.
    arrivals: u64,
    seen: u64,
    /// Switches that must have happened, but were not seen.
    missing: u64,
}

#[derive(Debug, Default)]
pub(super) struct CoreStates {
    cores: BTreeMap<u16, CoreState>,
}

impl CoreStates {
    /// Forgets which threads run.
    pub(super) fn forget(&mut self) {
        for core in self.cores.values_mut() {
            core.running = None;
        }
    }

    pub(super) fn switch(&mut self, time_ns: u64, cpu: u16, previous: i32, next: i32) {
        let core = self.cores.entry(cpu).or_default();
        core.running = Some(next);
        core.since_ns = time_ns;
        core.arrivals += u64::from(next != 0);
        core.seen += u64::from(previous == 0);
    }

    /// Infers when a thread that could run from `ready_ns` on got the core where it is seen running at
    /// `now_ns` without a switch. A switch from another recorded thread would have been seen, so the core was
    /// idle: the thread got it as soon as both were ready.
    pub(super) fn infer_arrival(&mut self, cpu: u16, tid: i32, ready_ns: u64, now_ns: u64) -> u64 {
        let core = self.cores.entry(cpu).or_default();
        core.missing += 1;
        let arrival = match core.running {
            Some(0) => core.since_ns.max(ready_ns),
            _ => ready_ns,
        };
        core.running = Some(tid);
        core.since_ns = arrival.min(now_ns);
        core.since_ns
    }

    /// Cores without a reported switch away from the idle thread, though there must have been many. A few are
    /// missing on any core: events are switched on one by one when a burst begins.
    pub(super) fn without_switches(&self) -> Vec<u16> {
        let silent = self.cores.iter().filter(|(_, core)| {
            let many = core.missing > 10 && core.missing * 20 > core.arrivals;
            many && core.missing > core.seen * 9
        });
        silent.map(|(&cpu, _)| cpu).collect()
    }

    /// Arrivals that were inferred, and those that were seen.
    pub(super) fn arrivals(&self) -> (u64, u64) {
        let missing = self.cores.values().map(|core| core.missing).sum();
        (missing, self.cores.values().map(|core| core.seen).sum())
    }
}
