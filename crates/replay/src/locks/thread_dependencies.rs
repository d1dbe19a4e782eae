//! Waits of one session for another that no rule explains. A wait ends when the signal was given more often
//! than the waiting session has completed rounds of its program.

use tierwise_device::Nanos;

use crate::kernel::events::{Event, Events};
use crate::kernel::session::SessionState;
use crate::program::prepared::Program;

/// Signals given in advance where the signalling session does not run: more than any session has rounds.
const FOR_EVER: u32 = u32::MAX / 2;

/// A waiting session.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    signal: usize,
    session: u32,
    /// Whether its wait began before the previous check.
    long: bool,
}

/// Signals and their waiting sessions. Each copy of the recorded sessions has signals of its own.
#[derive(Debug)]
pub(crate) struct ThreadDependencies {
    /// Signals of one copy of the sessions.
    in_a_set: usize,
    given: Vec<u32>,
    waiting: Vec<Waiting>,
    /// Waits that ended without their signal.
    given_up: u64,
}

impl ThreadDependencies {
    /// Signals for this many copies of a program's sessions.
    pub(crate) fn new(program: &Program, sets: u32) -> Self {
        let in_a_set = program.signallers.len();
        Self {
            in_a_set,
            given: vec![0; sets as usize * in_a_set],
            waiting: Vec::new(),
            given_up: 0,
        }
    }

    /// Waits that ended without their signal.
    pub(crate) fn given_up(&self) -> u64 {
        self.given_up
    }

    /// Gives in advance the signals of sessions that do not run.
    pub(crate) fn pre_signal_missing(&mut self, program: &Program, sessions: &[SessionState]) {
        for (at, given) in self.given.iter_mut().enumerate() {
            let (set, signaller) = (at / self.in_a_set, program.signallers[at % self.in_a_set]);
            let runs = |program| {
                let mut sessions = sessions.iter();
                sessions
                    .any(|session| session.program_index == program && session.set as usize == set)
            };
            if !signaller.is_some_and(runs) {
                *given = FOR_EVER;
            }
        }
    }

    /// A session signals: wakes the sessions that waited for it.
    pub(crate) fn signal(
        &mut self,
        (index, number): (u32, u32),
        sessions: &[SessionState],
        now: Nanos,
        events: &mut Events,
    ) {
        let signal = self.signal_of(&sessions[index as usize], number);
        self.given[signal] += 1;
        let given = self.given[signal];
        let mut at = 0;
        while let Some(waiting) = self.waiting.get(at) {
            let session = waiting.session;
            if waiting.signal == signal && given > sessions[session as usize].cycle {
                self.waiting.swap_remove(at);
                events.push(now, Event::Wake(session));
            } else {
                at += 1;
            }
        }
    }

    /// Whether a signal was given to a session; if not, the session is added to the waiting ones.
    pub(crate) fn is_given(
        &mut self,
        (index, number): (u32, u32),
        sessions: &[SessionState],
    ) -> bool {
        let session = &sessions[index as usize];
        let signal = self.signal_of(session, number);
        if self.given[signal] > session.cycle {
            return true;
        }
        self.waiting.push(Waiting {
            signal,
            session: index,
            long: false,
        });
        false
    }

    /// Ends waits that began before the previous call: no wait may last for ever.
    pub(crate) fn give_up_waits(&mut self, now: Nanos, events: &mut Events) {
        let mut at = 0;
        while let Some(waiting) = self.waiting.get_mut(at) {
            if !std::mem::replace(&mut waiting.long, true) {
                at += 1;
                continue;
            }
            events.push(now, Event::Wake(waiting.session));
            self.waiting.swap_remove(at);
            self.given_up += 1;
        }
    }

    /// Index of a signal among those of a session's copy.
    fn signal_of(&self, session: &SessionState, number: u32) -> usize {
        session.set as usize * self.in_a_set + number as usize
    }
}
