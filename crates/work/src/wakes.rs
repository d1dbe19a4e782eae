//! Whether threads that wake wait for the core that they ran on, and how long an idle core takes to start one.
//!
//! Kernels put a thread that wakes on the core that it ran on last, on that of whoever woke it, or on one that idles, by
//! rules that differ (`select_task_rq_fair` and `select_idle_sibling` of Linux's kernel/sched/fair.c; kernels of virtual
//! machines leave halted cores alone, for they are dear to start). So shares are taken from the recording, by how long
//! the core that idles has done so. Measured on a virtual machine of two cores, Linux 6.18, order entry by 4 clients
//! on PostgreSQL: of 190,000 wakings 0.1 % changed the core, however long the other had idled, and of 34,000 times
//! that a core had nothing to do while a thread waited for the other, it took that over 210 times.

use tierwise_recording::{State, StateKind};

/// Ends of the classes of how long a core has idled, in nanoseconds; the last class has none.
const AGES_NS: [u64; 5] = [10_000, 30_000, 100_000, 300_000, 1_000_000];
const AGES: usize = AGES_NS.len() + 1;
/// Wakings from which on what they show is believed.
const ENOUGH: usize = 10;
/// Longer is taken for this.
const MOST_DELAY_NS: u64 = 1_000_000;
/// Switches on two cores that belong together lie within this.
const ABOUT_NS: u64 = 3_000;
/// States times cores of which all are looked at; of more, some.
const MOST_LOOKS: usize = 20_000_000;
/// Those who wait at an instant are looked for among so many that began to wait last.
const MOST_WAITING: usize = 64;

/// What becomes of threads that wake.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WakeRules {
    stays: [f64; AGES],
    starts_ns: [u32; AGES],
    leaves: f64,
}

fn age(idle_ns: u64) -> usize {
    AGES_NS.partition_point(|&end_ns| end_ns <= idle_ns)
}

impl WakeRules {
    /// The same for cores that idled however long; see the other functions.
    #[must_use]
    pub fn new(stays_share: f64, leaves_share: f64, starts_ns: u32) -> Self {
        Self {
            stays: [stays_share; AGES],
            starts_ns: [starts_ns; AGES],
            leaves: leaves_share,
        }
    }

    /// Where somebody runs on the core that a thread ran on last, and another has idled for so long: the share of
    /// wakings that leave it there.
    #[must_use]
    pub fn stays_share(&self, idle_ns: u64) -> f64 {
        self.stays[age(idle_ns)]
    }

    /// Where a core comes to have nothing to do, and somebody waits for another one: how often it leaves him there.
    #[must_use]
    pub fn leaves_share(&self) -> f64 {
        self.leaves
    }

    /// How long a core that has idled for so long takes to start a thread.
    #[must_use]
    pub fn starts_ns(&self, idle_ns: u64) -> u64 {
        self.starts_ns[age(idle_ns)].into()
    }

    /// As the states of a recording show, sorted by thread and time.
    pub(crate) fn of(states: &[State], cores: &Cores) -> Self {
        let mut stay: [Vec<bool>; AGES] = Default::default();
        let mut delays: [Vec<u64>; AGES] = Default::default();
        let step = (states.len() * cores.seen.len() / MOST_LOOKS).max(1);
        for (at, before) in states.iter().enumerate().step_by(step) {
            let Some(after) = woken(before, states.get(at + 1)) else {
                continue;
            };
            let now_ns = before.end_ns;
            if let Some(idle_ns) = cores.idle_ns(after.cpu, now_ns) {
                let took_ns = start(after, states.get(at + 2));
                delays[age(idle_ns)].extend(took_ns);
            }
            if cores.idle_ns(before.cpu, now_ns).is_none()
                && let Some(idle_ns) = cores.freshest(before.cpu, now_ns)
            {
                stay[age(idle_ns)].push(after.cpu == before.cpu);
            }
        }
        Self {
            stays: filled(stay.map(share)),
            starts_ns: filled(delays.map(mean)),
            leaves: leaves_share(states, cores),
        }
    }
}

/// The state after a waking, if there is one between two states.
fn woken<'s>(before: &State, after: Option<&'s State>) -> Option<&'s State> {
    let follow = |after: &&State| before.thread == after.thread && before.end_ns == after.start_ns;
    after
        .filter(follow)
        .filter(|_| before.kind == StateKind::Blocked)
}

/// How long a thread that could run waited for its core to start it, where that was told.
fn start(ready: &State, runs: Option<&State>) -> Option<u64> {
    let runs = runs.filter(|runs| {
        let follow = ready.thread == runs.thread && ready.end_ns == runs.start_ns;
        follow && runs.kind == StateKind::Cpu && runs.cpu == ready.cpu
    });
    let told = ready.kind == StateKind::Runnable && runs.is_some();
    told.then(|| ready.end_ns - ready.start_ns)
}

/// How often a core that had nothing to do left those where they were who waited for another one, rather than take them.
fn leaves_share(states: &[State], cores: &Cores) -> f64 {
    let waits = |state: &&State| state.kind == StateKind::Runnable;
    let mut waiting: Vec<&State> = states.iter().filter(waits).collect();
    waiting.sort_unstable_by_key(|state| state.start_ns);
    let taken = states.windows(2).filter(|two| {
        let goes_on = two[0].thread == two[1].thread && two[0].end_ns == two[1].start_ns;
        waits(&&two[0]) && goes_on && two[1].kind == StateKind::Cpu && two[0].cpu != two[1].cpu
    });
    let taken = taken.count();
    let left = cores.pauses().filter(|&(core, from_ns)| {
        let before = waiting.partition_point(|state| state.start_ns + ABOUT_NS < from_ns);
        let mut some = waiting[before.saturating_sub(MOST_WAITING)..before].iter();
        some.any(|state| {
            let waits_on = state.end_ns > from_ns + ABOUT_NS && state.cpu != core;
            waits_on && cores.idle_ns(state.cpu, from_ns).is_none()
        })
    });
    let left = left.count();
    if left + taken < ENOUGH {
        return 0.0;
    }
    left as f64 / (left + taken) as f64
}

/// The share of those that are true, if they are enough.
fn share(chosen: Vec<bool>) -> Option<f64> {
    let first = chosen.iter().filter(|&&first| first).count();
    (chosen.len() >= ENOUGH).then(|| first as f64 / chosen.len() as f64)
}

/// The mean, if there are enough. Some waited for threads that are not recorded, the kernel's own for example, which
/// others that wake will do as well.
fn mean(delays: Vec<u64>) -> Option<u32> {
    let sum: u64 = delays
        .iter()
        .map(|&delay_ns| delay_ns.min(MOST_DELAY_NS))
        .sum();
    let enough = delays.len() >= ENOUGH;
    enough.then(|| (sum / delays.len() as u64) as u32)
}

/// What is not known is as the nearest that is.
fn filled<T: Copy + Default>(known: [Option<T>; AGES]) -> [T; AGES] {
    std::array::from_fn(|at| {
        let nearest = (0..AGES).filter_map(|other| Some((other.abs_diff(at), known[other]?)));
        let nearest = nearest.min_by_key(|&(distance, _)| distance);
        nearest.map_or_else(T::default, |(_, value)| value)
    })
}

/// When recorded threads were on each core, in order. Others may have been, unseen, but not mostly.
#[derive(Default)]
pub(crate) struct Cores {
    stretches: Vec<Vec<(u64, u64)>>,
    /// Those on which anything ran.
    seen: Vec<u16>,
}

impl Cores {
    pub(crate) fn new(states: &[State]) -> Self {
        let mut cores = Self::default();
        for state in states.iter().filter(|state| state.kind == StateKind::Cpu) {
            let core = usize::from(state.cpu);
            if cores.stretches.len() <= core {
                cores.stretches.resize(core + 1, Vec::new());
            }
            cores.stretches[core].push((state.start_ns, state.end_ns));
        }
        for (core, stretches) in cores.stretches.iter_mut().enumerate() {
            stretches.sort_unstable();
            cores
                .seen
                .extend((!stretches.is_empty()).then_some(core as u16));
        }
        cores
    }

    /// How long a core has idled at an instant, if it does; since ever, if nothing ran there before.
    pub(crate) fn idle_ns(&self, core: u16, time_ns: u64) -> Option<u64> {
        let stretches = self.stretches.get(usize::from(core))?;
        let after = stretches.partition_point(|&(start_ns, _)| start_ns < time_ns);
        let Some(&(_, end_ns)) = stretches[..after].last() else {
            return Some(u64::MAX);
        };
        (end_ns < time_ns).then(|| time_ns - end_ns)
    }

    /// How long that core has idled that began last, of those but one.
    fn freshest(&self, but: u16, time_ns: u64) -> Option<u64> {
        let others = self.seen.iter().filter(|&&core| core != but);
        others.filter_map(|&core| self.idle_ns(core, time_ns)).min()
    }

    /// How long that core has idled that began last; for ever if none idles.
    pub(crate) fn idle_since_ns(&self, time_ns: u64) -> u64 {
        self.freshest(u16::MAX, time_ns).unwrap_or(u64::MAX)
    }

    /// Whether any idles of so many; those on which nothing was seen to run do.
    pub(crate) fn any_idles(&self, of: u32, time_ns: u64) -> bool {
        self.seen.len() < of as usize || self.freshest(u16::MAX, time_ns).is_some()
    }

    /// When cores came to have nothing to do, for longer than a switch takes.
    fn pauses(&self) -> impl Iterator<Item = (u16, u64)> {
        self.seen.iter().flat_map(|&core| {
            let stretches = &self.stretches[usize::from(core)];
            let pauses = stretches.windows(2).map(|two| (two[0].1, two[1].0));
            let long = pauses.filter(|&(end_ns, next_ns)| next_ns > end_ns + ABOUT_NS);
            long.map(move |(end_ns, _)| (core, end_ns))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_state::state;

    fn on_core(cpu: u16, thread: u32, us: (u64, u64), kind: StateKind) -> State {
        State {
            cpu,
            ..state(thread, us, kind)
        }
    }

    /// A thread runs on core 0 for 400 µs of each millisecond; another, that ran there last, wakes 60 µs after core 1
    /// began to idle. One time of four core 1 takes it, and needs 30 µs to start it; else it waits.
    fn recorded() -> WakeRules {
        let mut states = Vec::new();
        for at in (0..100_000).step_by(1000) {
            states.push(state(0, (at, at + 400), StateKind::Cpu));
            states.push(state(0, (at + 400, at + 1000), StateKind::Blocked));
        }
        for at in (0..100_000).step_by(1000) {
            let (core, ready_us) = if at % 4000 == 0 { (1, 30) } else { (0, 340) };
            let from = at + 60 + ready_us;
            states.push(state(1, (at, at + 60), StateKind::Blocked));
            states.push(on_core(core, 1, (at + 60, from), StateKind::Runnable));
            states.push(on_core(core, 1, (from, at + 1000), StateKind::Cpu));
        }
        for at in (0..100_000).step_by(1000) {
            states.push(on_core(1, 2, (at - at.min(1), at), StateKind::Cpu));
        }
        WakeRules::of(&states, &Cores::new(&states))
    }

    #[test]
    fn shares_and_delays_are_found_by_how_long_a_core_idled() {
        let rules = recorded();
        assert!((rules.stays_share(60_000) - 0.75).abs() < 0.02);
        // What was not seen is as what was seen of the nearest time.
        assert_eq!(rules.starts_ns(60_000), 30_000);
        assert_eq!(rules.starts_ns(u64::MAX), 30_000);
    }

    #[test]
    fn nothing_seen_is_cores_that_start_at_once_and_leave_nobody() {
        let rules = WakeRules::of(&[], &Cores::new(&[]));
        assert_eq!(rules, WakeRules::default());
    }
}
