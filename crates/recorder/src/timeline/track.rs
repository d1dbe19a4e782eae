//! States of one thread, without a gap.

use tierwise_recording::{Call, NONE, State, StateKind, TransactionStatus};

use super::cores::Cores;
use crate::SwitchState;

/// State of a thread at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
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
pub(super) struct Track {
    pub thread: u32,
    pub tid: i32,
    pub phase: Phase,
    pub since_ns: u64,
    pub cpu: u16,
    pub states: Vec<State>,
    pub calls: Vec<Call>,
    /// The call it is in, or [`NONE`].
    pub call: u32,
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

impl Track {
    pub(super) fn new(thread: u32, tid: i32) -> Self {
        Self {
            thread,
            tid,
            phase: Phase::Gone,
            since_ns: 0,
            cpu: 0,
            states: Vec::new(),
            calls: Vec::new(),
            call: NONE,
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

    /// A burst begins: nothing is known.
    pub(super) fn begin(&mut self, time_ns: u64) {
        self.enter_phase(Phase::Unseen, time_ns);
        self.call = NONE;
        self.call_before = NONE;
        self.woken_early = None;
        self.acted = false;
        self.for_device = false;
        self.waited = None;
        self.replied = None;
        self.born = false;
        self.contradictions = 0;
    }

    /// Born just now: it can run.
    pub(super) fn born(&mut self, time_ns: u64) {
        self.begin(time_ns);
        self.phase = Phase::Runnable;
        self.born = true;
    }

    fn enter_phase(&mut self, phase: Phase, time_ns: u64) {
        self.phase = phase;
        self.since_ns = time_ns;
        self.call_before = self.call;
    }

    /// Ends the present phase, as `kind`.
    fn push(&mut self, kind: StateKind, end_ns: u64, waker: u32) {
        if end_ns <= self.since_ns {
            return;
        }
        let whole = self.call_before == self.call;
        if kind == StateKind::Blocked && whole && self.call == NONE && !self.for_device {
            self.waited = Some(self.states.len());
        }
        self.states.push(State {
            thread: self.thread,
            start_ns: self.since_ns,
            end_ns,
            kind,
            cpu: self.cpu,
            waker,
            call: if whole { self.call } else { NONE },
        });
        self.since_ns = end_ns;
    }

    /// The thread is seen running: without a reported switch, one is inferred.
    pub(super) fn runs(&mut self, time_ns: u64, cpu: u16, cores: &mut Cores) {
        match self.phase {
            Phase::Cpu => {
                self.contradictions += u64::from(self.cpu != cpu);
                self.cpu = cpu;
                return;
            }
            Phase::Gone => return,
            Phase::Unseen => {}
            Phase::Blocked if self.woken_early.is_none() => {
                self.contradictions += 1;
                self.push(StateKind::Blocked, time_ns, NONE);
            }
            Phase::Blocked | Phase::Runnable => {
                let arrival = cores.infer_arrival(cpu, self.tid, self.since_ns, time_ns);
                self.push(StateKind::Runnable, arrival, NONE);
            }
        }
        self.cpu = cpu;
        self.woken_early = None;
        let since_ns = self.since_ns;
        self.enter_phase(Phase::Cpu, since_ns);
    }

    /// A switch brings the thread to a core.
    pub(super) fn arrives(&mut self, time_ns: u64, cpu: u16) {
        match self.phase {
            Phase::Gone => return,
            Phase::Cpu => {
                self.contradictions += 1;
                self.push(StateKind::Cpu, time_ns, NONE);
            }
            Phase::Blocked if self.woken_early.is_none() => {
                self.contradictions += 1;
                self.push(StateKind::Blocked, time_ns, NONE);
            }
            _ => self.push(StateKind::Runnable, time_ns, NONE),
        }
        self.cpu = cpu;
        self.woken_early = None;
        self.enter_phase(Phase::Cpu, time_ns);
    }

    /// A switch takes it off its core.
    pub(super) fn leaves(&mut self, time_ns: u64, state: SwitchState) {
        if self.phase == Phase::Gone {
            return;
        }
        self.push(StateKind::Cpu, time_ns, NONE);
        self.for_device = state == SwitchState::Disk;
        let next = match state {
            SwitchState::Runnable => Phase::Runnable,
            SwitchState::Dead => Phase::Gone,
            SwitchState::Sleeping | SwitchState::Disk | SwitchState::Stopped => Phase::Blocked,
        };
        if next != Phase::Blocked {
            self.woken_early = None;
        }
        self.enter_phase(next, time_ns);
    }

    /// Another thread wakes it. A waking is reported before the lock of the core is taken, so it may come
    /// before the switch that it answers; it is kept until then.
    pub(super) fn woken(&mut self, time_ns: u64, target: u16, waker: u32) {
        match self.phase {
            Phase::Unseen | Phase::Blocked => {
                self.push(StateKind::Blocked, time_ns, waker);
                self.cpu = target;
                self.woken_early = None;
                self.enter_phase(Phase::Runnable, time_ns);
            }
            Phase::Cpu => self.woken_early = Some(waker),
            Phase::Runnable | Phase::Gone => {}
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
        self.call_before = self.call;
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

    /// It ends.
    pub(super) fn dies(&mut self, time_ns: u64) {
        if self.phase != Phase::Gone {
            self.push(StateKind::Cpu, time_ns, NONE);
            self.phase = Phase::Gone;
        }
    }

    /// The burst ends.
    pub(super) fn end(&mut self, time_ns: u64) {
        match self.phase {
            Phase::Cpu => self.push(StateKind::Cpu, time_ns, NONE),
            Phase::Runnable => self.push(StateKind::Runnable, time_ns, NONE),
            Phase::Blocked if self.woken_early.is_some() => {
                self.push(StateKind::Runnable, time_ns, NONE);
            }
            Phase::Blocked => self.push(StateKind::Blocked, time_ns, NONE),
            Phase::Unseen if self.alive => self.push(StateKind::Blocked, time_ns, NONE),
            Phase::Unseen | Phase::Gone => {}
        }
    }
}
