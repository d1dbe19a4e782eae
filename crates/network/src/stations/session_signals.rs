//! Waits of one session for another that no rule explains. A wait ends when the signal was given more often than the
//! waiting session has completed rounds of its recorded work. Each copy of the recorded sessions has signals of its own.

use tierwise_work::TimeCategory;

use crate::kernel::clock::TaskId;
use crate::kernel::machine::Machine;
use crate::kernel::task::{TaskHandle, TaskState};
use crate::program::Program;

/// Signals given in advance where the signalling session does not run: more than any session has rounds.
const FOR_EVER: u32 = u32::MAX / 2;

/// A waiting session.
#[derive(Clone, Copy, Debug)]
struct WaitingSession {
    signal: usize,
    session: TaskId,
    /// Number of times that the signal must have been given.
    times: u32,
    /// Whether its wait began before the previous check.
    long: bool,
}

/// Signals and their waiting sessions.
#[derive(Debug)]
pub(crate) struct SessionSignals {
    /// Signals of one copy of the sessions.
    in_a_copy: usize,
    given: Vec<u32>,
    waiting: Vec<WaitingSession>,
    /// Waits that ended without their signal.
    given_up: u64,
}

impl SessionSignals {
    /// Signals of all copies of a program's sessions; those of sessions that do not run are given in advance.
    pub(crate) fn new(program: &Program, tasks: &[TaskState]) -> Self {
        let in_a_copy = program.signallers.len();
        let last = tasks.iter().map(|task| task.copy).max();
        let copies = last.map_or(0, |last| last + 1);
        let mut given = Vec::with_capacity(copies as usize * in_a_copy);
        for copy in 0..copies {
            given.extend(program.signallers.iter().map(|signaller| {
                let mut tasks = tasks.iter();
                let runs = |task: &TaskState| task.session == *signaller && task.copy == copy;
                match signaller.is_some() && tasks.any(runs) {
                    true => 0,
                    false => FOR_EVER,
                }
            }));
        }
        Self {
            in_a_copy,
            given,
            waiting: Vec::new(),
            given_up: 0,
        }
    }

    /// What to know of waits that were given up.
    pub(crate) fn warning(&self) -> Option<String> {
        let missed = self.given_up;
        (missed > 0).then(|| {
            format!("{missed} waits for another session were given up: what they waited for did not come")
        })
    }
}

impl TaskHandle<'_> {
    /// Waits for another session's signal.
    pub(crate) async fn await_signal(&self, number: u32) {
        if self.machine().must_await_signal(self.id, number) {
            self.block(TimeCategory::Other).await;
        }
    }
}

impl Machine<'_> {
    fn signal_of(&mut self, id: TaskId, number: u32) -> usize {
        self.task(id).copy as usize * self.signals.in_a_copy + number as usize
    }

    /// A session signals: wakes the sessions that waited for it.
    pub(crate) fn signal(&mut self, id: TaskId, number: u32) {
        let signal = self.signal_of(id, number);
        let signals = &mut self.signals;
        signals.given[signal] += 1;
        let given = signals.given[signal];
        let due = |waiting: &mut WaitingSession| waiting.signal == signal && given >= waiting.times;
        for waiting in signals.waiting.extract_if(.., due) {
            self.clock.wake(waiting.session);
        }
    }

    fn must_await_signal(&mut self, id: TaskId, number: u32) -> bool {
        let signal = self.signal_of(id, number);
        let times = self.task(id).cycle + 1;
        let waits = self.signals.given[signal] < times;
        if waits {
            self.signals.waiting.push(WaitingSession {
                signal,
                session: id,
                times,
                long: false,
            });
        }
        waits
    }

    /// Ends waits that began before the previous call: no wait may last for ever.
    pub(crate) fn give_up_signals(&mut self) {
        let is_long = |waiting: &mut WaitingSession| std::mem::replace(&mut waiting.long, true);
        for waiting in self.signals.waiting.extract_if(.., is_long) {
            self.clock.wake(waiting.session);
            self.signals.given_up += 1;
        }
    }
}
