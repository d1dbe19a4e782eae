//! A core's run queue: the waiting sessions and the choice of the next one.
//!
//! Source: the recording (`PreemptionRules`). A woken thread preempts the running one with the recorded probability.
//! Otherwise woken and preempted threads are next by their recorded weights.

use tierwise_device::random::SplitMix;
use tierwise_work::PreemptionRules;

/// Resolution of a drawn probability.
const PARTS: usize = 1 << 20;

/// A waiting session.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    session: u32,
    /// Whether it was preempted; else it woke.
    lost: bool,
}

/// Waiting sessions, in the order of their arrival.
#[derive(Debug, Default)]
pub(crate) struct RunQueue {
    waiting: Vec<Waiter>,
    /// Number of preempted sessions.
    lost: usize,
    /// The session that preempts the running one.
    preemptor: Option<u32>,
}

impl RunQueue {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Enqueues a session that woke, or `lost` the core.
    pub(crate) fn push(&mut self, session: u32, lost: bool) {
        self.waiting.push(Waiter { session, lost });
        self.lost += usize::from(lost);
    }

    /// Lets a waiting session preempt the running one as soon as possible.
    pub(crate) fn set_preemptor(&mut self, session: u32) {
        self.preemptor = Some(session);
    }

    /// Whether a session preempts the running one.
    pub(crate) fn has_preemptor(&self) -> bool {
        self.preemptor.is_some()
    }

    /// Removes the next session.
    pub(crate) fn pop_next(
        &mut self,
        rules: &PreemptionRules,
        random: &mut SplitMix,
    ) -> Option<u32> {
        let place =
            |session| (self.waiting.iter()).position(|waits: &Waiter| waits.session == session);
        let at = match (self.preemptor.take().and_then(place), self.waiting.len()) {
            (Some(at), _) => at,
            (None, 0) => return None,
            (None, 1) => 0,
            (None, _) => self.draw_next(rules, random),
        };
        Some(self.remove(at))
    }

    /// Removes the session that has waited longest.
    pub(crate) fn pop_first(&mut self) -> Option<u32> {
        self.preemptor = None;
        let some = !self.waiting.is_empty();
        some.then(|| self.remove(0))
    }

    fn remove(&mut self, at: usize) -> u32 {
        let waits = self.waiting.remove(at);
        self.lost -= usize::from(waits.lost);
        waits.session
    }

    fn draw_next(&self, rules: &PreemptionRules, random: &mut SplitMix) -> usize {
        let queue = &self.waiting;
        let woke = queue.len() - self.lost;
        let weight = self.lost as f64 * rules.preempted_weight;
        let takes_preempted = is_drawn(random, weight / (weight + woke as f64));
        let mut among = (0..queue.len()).filter(|&at| queue[at].lost == takes_preempted);
        let later = match takes_preempted || is_drawn(random, rules.fifo_share) {
            true => 0,
            false => random.below(woke),
        };
        among.nth(later).unwrap_or(0)
    }
}

/// Draws whether an event with this probability happens.
pub(crate) fn is_drawn(random: &mut SplitMix, share: f64) -> bool {
    share > 0.0 && (random.below(PARTS) as f64) < share * PARTS as f64
}
