//! Who waits for a core, and who gets it next.
//!
//! Source: the recording (`PickRules`): who woke takes the core from whoever runs there in the recorded share of such
//! wakings; of the others, those who woke and those who lost the core are next by their recorded weight.

use tierwise_device::random::SplitMix;
use tierwise_work::PickRules;

/// Parts of one in which a share is drawn.
const PARTS: usize = 1 << 20;

/// One of those who wait.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    session: u32,
    /// Whether it ran there and lost the core; else it woke.
    lost: bool,
}

/// Those who wait for a core, in the order in which they began to.
#[derive(Debug, Default)]
pub(crate) struct RunQueue {
    waiting: Vec<Waiter>,
    /// How many of them lost the core.
    lost: usize,
    /// Who of them takes it from whoever runs there.
    preemptor: Option<u32>,
}

impl RunQueue {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// A session waits, which woke or has `lost` the core.
    pub(crate) fn push(&mut self, session: u32, lost: bool) {
        self.waiting.push(Waiter { session, lost });
        self.lost += usize::from(lost);
    }

    /// One of those who wait takes the core as soon as that is possible.
    pub(crate) fn set_preemptor(&mut self, session: u32) {
        self.preemptor = Some(session);
    }

    /// Whether one of them takes the core.
    pub(crate) fn has_preemptor(&self) -> bool {
        self.preemptor.is_some()
    }

    /// Takes out who is next.
    pub(crate) fn pop_next(&mut self, rules: &PickRules, random: &mut SplitMix) -> Option<u32> {
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

    /// Takes out who has waited longest.
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

    fn draw_next(&self, rules: &PickRules, random: &mut SplitMix) -> usize {
        let queue = &self.waiting;
        let woke = queue.len() - self.lost;
        let weight = self.lost as f64 * rules.lost_weight;
        let takes_preempted = is_drawn(random, weight / (weight + woke as f64));
        let mut among = (0..queue.len()).filter(|&at| queue[at].lost == takes_preempted);
        let later = match takes_preempted || is_drawn(random, rules.first_share) {
            true => 0,
            false => random.below(woke),
        };
        among.nth(later).unwrap_or(0)
    }
}

/// Whether something happens that does in such a share of all cases.
pub(crate) fn is_drawn(random: &mut SplitMix, share: f64) -> bool {
    share > 0.0 && (random.below(PARTS) as f64) < share * PARTS as f64
}
