//! Waits of one session for another that no rule explains.
use tierwise_work::Part;

use crate::kernel::events::Event;
use crate::kernel::simulation::Simulation;

impl Simulation<'_> {
    /// Gives for ever the signals of sessions that do not run.
    pub(crate) fn give_what_nobody_gives(&mut self) {
        let numbers = self.program.signallers.len();
        for (at, given) in self.signals.given.iter_mut().enumerate() {
            let (set, signaller) = (at / numbers, self.program.signallers[at % numbers]);
            let runs = |script| {
                let mut sessions = self.sessions.iter();
                sessions.any(|session| session.script == script && session.set as usize == set)
            };
            if !signaller.is_some_and(runs) {
                *given = u32::MAX / 2;
            }
        }
    }

    /// A signal's number among those of a session's set of sessions.
    fn numbered(&mut self, index: u32, number: u32) -> usize {
        let set = self.session(index).set as usize;
        set * self.program.signallers.len() + number as usize
    }

    /// A session lets others go on.
    pub(crate) fn signal(&mut self, index: u32, number: u32) -> bool {
        let number = self.numbered(index, number);
        self.signals.given[number] += 1;
        let given = self.signals.given[number];
        let mut at = 0;
        while let Some(&(awaited, session, _)) = self.signals.waiting.get(at) {
            if awaited as usize == number && given > self.sessions[session as usize].cycle {
                self.signals.waiting.swap_remove(at);
                self.events.push(self.now, Event::Wake(session));
            } else {
                at += 1;
            }
        }
        true
    }

    /// Lets those go on who have waited since before this was last called: no wait may last for ever.
    pub(crate) fn lose_patience(&mut self) {
        let mut at = 0;
        while let Some((_, session, long)) = self.signals.waiting.get_mut(at) {
            if !std::mem::replace(long, true) {
                at += 1;
                continue;
            }
            self.events.push(self.now, Event::Wake(*session));
            self.signals.waiting.swap_remove(at);
            self.signals.missed += 1;
        }
    }

    /// A session waits for a signal; whether it can go on at once.
    pub(crate) fn await_signal(&mut self, index: u32, number: u32) -> bool {
        let number = self.numbered(index, number);
        if self.signals.given[number] > self.session(index).cycle {
            return true;
        }
        self.does(index, Part::Other);
        self.signals.waiting.push((number as u32, index, false));
        self.waits(index)
    }
}
