//! Core selection for woken threads, and the time an idle core takes to start one.
//!
//! A kernel puts a woken thread on its last core, on its waker's core or on an idle one, by rules that differ between
//! kernels (Linux: `select_task_rq_fair`, `select_idle_sibling` in kernel/sched/fair.c; in virtual machines halted
//! cores are avoided because starting them is expensive). So the rules are recorded shares, by how long the idle core
//! had been idle. Measured on a virtual machine of two cores, Linux 6.18, order entry by 4 clients on PostgreSQL: of
//! 190,000 wakeups 0.1 % changed the core, however long the other had been idle; of 34,000 times that a core became
//! idle while a thread waited for the other core, it pulled that thread 210 times.

use tierwise_recording::{State, StateKind};

use crate::constants::TOGETHER_NS;
use crate::statistics::median;

/// Upper ends of the classes of idle time, in nanoseconds; the last class has none.
const AGES_NS: [u64; 5] = [10_000, 30_000, 100_000, 300_000, 1_000_000];
const AGES: usize = AGES_NS.len() + 1;
/// Least number of wakeups for an estimate.
const ENOUGH: usize = 10;
/// Up to this product of states and cores every state is examined; beyond it, a sample.
const MOST_LOOKS: usize = 20_000_000;
/// Waiting threads are searched among this many that began to wait last.
const MOST_WAITING: usize = 64;

/// Core selection at a wakeup, and the latency of starting an idle core.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WakeupRules {
    same_core: [f64; AGES],
    start_latency_ns: [u32; AGES],
    no_pull: f64,
}

fn age(idle_ns: u64) -> usize {
    AGES_NS.partition_point(|&end_ns| end_ns <= idle_ns)
}

impl WakeupRules {
    /// The same rules for every idle time; latency in nanoseconds.
    #[must_use]
    pub fn new(same_core_share: f64, no_pull_share: f64, start_latency_ns: u32) -> Self {
        Self {
            same_core: [same_core_share; AGES],
            start_latency_ns: [start_latency_ns; AGES],
            no_pull: no_pull_share,
        }
    }

    /// Makes cores start at once.
    pub(crate) fn start_at_once(&mut self) {
        self.start_latency_ns = [0; AGES];
    }

    /// Lets threads run on any idle core.
    pub(crate) fn move_freely(&mut self) {
        (self.same_core, self.no_pull) = ([0.0; AGES], 0.0);
    }

    /// Share of wakeups that stay on the thread's last core although it is busy and another has been idle for
    /// `idle_ns`.
    #[must_use]
    pub fn same_core_share(&self, idle_ns: u64) -> f64 {
        self.same_core[age(idle_ns)]
    }

    /// Share of cases in which a core that becomes idle does not pull a thread that waits for another core.
    #[must_use]
    pub fn no_pull_share(&self) -> f64 {
        self.no_pull
    }

    /// Time that a core which has been idle for `idle_ns` takes to start a thread, in nanoseconds.
    #[must_use]
    pub fn start_latency_ns(&self, idle_ns: u64) -> u64 {
        self.start_latency_ns[age(idle_ns)].into()
    }

    /// The rules inferred from recorded states, which are sorted by thread and time.
    pub(crate) fn of(states: &[State], cores: &CoreActivity) -> Self {
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
            same_core: filled(stay.map(share)),
            start_latency_ns: filled(delays.map(usual)),
            no_pull: no_pull_share(states, cores),
        }
    }
}

/// The state after a wakeup, if there is one between two states.
fn woken<'s>(before: &State, after: Option<&'s State>) -> Option<&'s State> {
    let follow = |after: &&State| before.thread == after.thread && before.end_ns == after.start_ns;
    after
        .filter(follow)
        .filter(|_| before.kind == StateKind::Blocked)
}

/// How long a runnable thread waited for its core to start it, where the recording shows it.
fn start(ready: &State, runs: Option<&State>) -> Option<u64> {
    let runs = runs.filter(|runs| {
        let follow = ready.thread == runs.thread && ready.end_ns == runs.start_ns;
        follow && runs.kind == StateKind::Cpu && runs.cpu == ready.cpu
    });
    let told = ready.kind == StateKind::Runnable && runs.is_some();
    told.then(|| ready.end_ns - ready.start_ns)
}

/// How often an idle core left threads waiting for another core, rather than pull one.
fn no_pull_share(states: &[State], cores: &CoreActivity) -> f64 {
    let waits = |state: &&State| state.kind == StateKind::Runnable;
    let mut waiting: Vec<&State> = states.iter().filter(waits).collect();
    waiting.sort_unstable_by_key(|state| state.start_ns);
    let taken = states.windows(2).filter(|two| {
        let goes_on = two[0].thread == two[1].thread && two[0].end_ns == two[1].start_ns;
        waits(&&two[0]) && goes_on && two[1].kind == StateKind::Cpu && two[0].cpu != two[1].cpu
    });
    let taken = taken.count();
    let left = cores.pauses().filter(|&(core, from_ns)| {
        let before = waiting.partition_point(|state| state.start_ns + TOGETHER_NS.get() < from_ns);
        let mut some = waiting[before.saturating_sub(MOST_WAITING)..before].iter();
        some.any(|state| {
            let waits_on = state.end_ns > from_ns + TOGETHER_NS.get() && state.cpu != core;
            waits_on && cores.idle_ns(state.cpu, from_ns).is_none()
        })
    });
    let left = left.count();
    if left + taken < ENOUGH {
        return 0.0;
    }
    left as f64 / (left + taken) as f64
}

/// The share of true cases, if there are enough.
fn share(chosen: Vec<bool>) -> Option<f64> {
    let first = chosen.iter().filter(|&&first| first).count();
    (chosen.len() >= ENOUGH).then(|| first as f64 / chosen.len() as f64)
}

/// The median, if there are enough values. Longer delays were waits for unrecorded threads: a replay has
/// those as background load.
fn usual(delays: Vec<u64>) -> Option<u32> {
    let enough = delays.len() >= ENOUGH;
    median(delays)
        .filter(|_| enough)
        .map(|delay_ns| delay_ns as u32)
}

/// Fills an unknown class with the value of the nearest known one.
fn filled<T: Copy + Default>(known: [Option<T>; AGES]) -> [T; AGES] {
    std::array::from_fn(|at| {
        let nearest = (0..AGES).filter_map(|other| Some((other.abs_diff(at), known[other]?)));
        let nearest = nearest.min_by_key(|&(distance, _)| distance);
        nearest.map_or_else(T::default, |(_, value)| value)
    })
}

/// Intervals of recorded threads on each core, in order. Unrecorded threads may have run too, but rarely.
#[derive(Default)]
pub(crate) struct CoreActivity {
    busy_spans: Vec<Vec<(u64, u64)>>,
    /// Cores on which any thread ran.
    seen: Vec<u16>,
}

impl CoreActivity {
    pub(crate) fn new(states: &[State]) -> Self {
        let mut cores = Self::default();
        for state in states.iter().filter(|state| state.kind == StateKind::Cpu) {
            let core = usize::from(state.cpu);
            if cores.busy_spans.len() <= core {
                cores.busy_spans.resize(core + 1, Vec::new());
            }
            cores.busy_spans[core].push((state.start_ns, state.end_ns));
        }
        for (core, busy_spans) in cores.busy_spans.iter_mut().enumerate() {
            busy_spans.sort_unstable();
            cores
                .seen
                .extend((!busy_spans.is_empty()).then_some(core as u16));
        }
        cores
    }

    /// How long a core has been idle at an instant, none if it is busy; `u64::MAX` if nothing ran there before.
    pub(crate) fn idle_ns(&self, core: u16, time_ns: u64) -> Option<u64> {
        let busy_spans = self.busy_spans.get(usize::from(core))?;
        let after = busy_spans.partition_point(|&(start_ns, _)| start_ns < time_ns);
        let Some(&(_, end_ns)) = busy_spans[..after].last() else {
            return Some(u64::MAX);
        };
        (end_ns < time_ns).then(|| time_ns - end_ns)
    }

    /// The shortest idle time among the idle cores, one core excluded.
    fn freshest(&self, but: u16, time_ns: u64) -> Option<u64> {
        let others = self.seen.iter().filter(|&&core| core != but);
        others.filter_map(|&core| self.idle_ns(core, time_ns)).min()
    }

    /// The shortest idle time among the idle cores; `u64::MAX` if none is idle.
    pub(crate) fn idle_since_ns(&self, time_ns: u64) -> u64 {
        self.freshest(u16::MAX, time_ns).unwrap_or(u64::MAX)
    }

    /// Whether any of `of` cores is idle; a core without recorded threads counts as idle.
    pub(crate) fn any_idles(&self, of: u32, time_ns: u64) -> bool {
        self.seen.len() < of as usize || self.freshest(u16::MAX, time_ns).is_some()
    }

    /// When cores became idle for longer than a switch takes: core, instant.
    fn pauses(&self) -> impl Iterator<Item = (u16, u64)> {
        self.seen.iter().flat_map(|&core| {
            let busy_spans = &self.busy_spans[usize::from(core)];
            let pauses = busy_spans.windows(2).map(|two| (two[0].1, two[1].0));
            let long = pauses.filter(|&(end_ns, next_ns)| next_ns > end_ns + TOGETHER_NS.get());
            long.map(move |(end_ns, _)| (core, end_ns))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_states::state;

    fn on_core(cpu: u16, thread: u32, us: (u64, u64), kind: StateKind) -> State {
        State {
            cpu,
            ..state(thread, us, kind)
        }
    }

    /// A thread runs on core 0 for 400 µs of each millisecond; another, whose last core that is, wakes 60
    /// µs after core 1 became idle. In one of four cases core 1 takes it, and needs 30 µs to start it; else
    /// it waits.
    fn recorded() -> WakeupRules {
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
        WakeupRules::of(&states, &CoreActivity::new(&states))
    }

    #[test]
    fn shares_and_delays_are_found_by_how_long_a_core_idled() {
        let rules = recorded();
        assert!((rules.same_core_share(60_000) - 0.75).abs() < 0.02);
        // An idle time without observations uses the nearest observed one.
        assert_eq!(rules.start_latency_ns(60_000), 30_000);
        assert_eq!(rules.start_latency_ns(u64::MAX), 30_000);
    }

    #[test]
    fn nothing_seen_is_cores_that_start_at_once_and_leave_nobody() {
        let rules = WakeupRules::of(&[], &CoreActivity::new(&[]));
        assert_eq!(rules, WakeupRules::default());
    }
}
