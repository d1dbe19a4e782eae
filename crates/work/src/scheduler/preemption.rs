//! Wakeup preemption, and which runnable thread gets a core that becomes free.
//!
//! Kernels decide by virtual runtimes, weights and control groups (Linux's EEVDF, kernel/sched/fair.c). A recording
//! shows none of these, but it shows every decision, so the rules are shares of recorded decisions. Measured on Linux
//! 6.18, a virtual machine of two cores, order entry by 4 and 32 clients: 25 to 85 % of wakeups onto a busy core
//! preempt it, 4 µs after the wakeup if the running thread woke the other, else 15 to 20 µs after. A preempted thread
//! waits until most of the woken ones ran. There, neither first come, first served nor deadlines of equal shares
//! predict the next thread better than chance.

use tierwise_recording::{Recording, ThreadClass};

use crate::constants::PREEMPTED_NS;
use crate::scheduler::core_events::{CoreEvent, events};
use crate::scheduler::waker::{WAKERS, Waker};
use crate::statistics::{ENOUGH, RunningMean};

/// Largest number of core events examined.
const MOST_EVENTS: usize = 500_000;
/// Limits for the weight of preempted threads (this and its inverse), and the number of bisections.
const MOST_WEIGHT: f64 = 1000.0;
const HALVINGS: u32 = 30;

/// How threads share a core. By default there is no preemption, and the thread that waited longest runs next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PreemptionRules {
    /// Share of wakeups onto a busy core that preempt the running thread, by [`Waker`], then by server's or
    /// client's thread.
    pub preempt_share: [[f64; 2]; WAKERS],
    /// Time from such a wakeup to the preemption, in nanoseconds, by [`Waker`].
    pub preempt_after_ns: [u64; WAKERS],
    /// Weight of a preempted thread in the choice of the next one; that of a woken thread is 1.
    pub preempted_weight: f64,
    /// If a woken thread is next: share of cases, beyond chance, in which it waited longest.
    pub fifo_share: f64,
}

impl Default for PreemptionRules {
    fn default() -> Self {
        Self {
            preempt_share: [[0.0; 2]; WAKERS],
            preempt_after_ns: [0; WAKERS],
            preempted_weight: 1.0,
            fifo_share: 1.0,
        }
    }
}

impl PreemptionRules {
    /// The rules inferred from a recording's states.
    pub(crate) fn of(recording: &Recording) -> Self {
        let mut seen = Seen::default();
        for events in events(&recording.states).values() {
            seen.watch(events, recording);
        }
        seen.rules()
    }
}

/// A thread that waits for the core.
#[derive(Clone, Copy)]
struct Waits {
    thread: u32,
    lost: bool,
}

/// Observed decisions.
#[derive(Default)]
struct Seen {
    takes: [[RunningMean; 2]; WAKERS],
    preempt_after_ns: [RunningMean; WAKERS],
    /// Of each choice: number of preempted and of woken threads, and whether a preempted one was next.
    either: Vec<(f64, f64, bool)>,
    /// How often the woken thread that waited longest was next, and the number expected by chance.
    first: RunningMean,
    by_chance: f64,
}

impl Seen {
    /// Follows the events of a core.
    fn watch(&mut self, events: &[(u64, CoreEvent, u32)], recording: &Recording) {
        let mut queue: Vec<Waits> = Vec::new();
        // The running thread; threads woken meanwhile, with waker and instant; the thread that just lost the
        // core, and when.
        let mut running: Option<u32> = None;
        let mut woken: Vec<(u32, Waker, u64)> = Vec::new();
        let mut lost_at = None;
        for &(time_ns, what, thread) in events.iter().take(MOST_EVENTS) {
            match what {
                CoreEvent::Wakes { by } => {
                    queue.push(Waits {
                        thread,
                        lost: false,
                    });
                    woken.extend(running.map(|runs| (thread, Waker::of(by, runs), time_ns)));
                }
                CoreEvent::Stops { waits } if running == Some(thread) => {
                    running = None;
                    lost_at = waits.then_some(time_ns);
                    if waits {
                        queue.push(Waits { thread, lost: true });
                    }
                }
                CoreEvent::Stops { .. } => {}
                CoreEvent::Runs => {
                    let took =
                        lost_at.is_some_and(|lost_ns| time_ns < lost_ns + PREEMPTED_NS.get());
                    for (woke, waker, woke_ns) in woken.drain(..) {
                        let client = is_client(recording, woke);
                        let takes = took && woke == thread;
                        self.takes[waker as usize][client].add(f64::from(u8::from(takes)));
                        if takes {
                            self.preempt_after_ns[waker as usize].add((time_ns - woke_ns) as f64);
                        }
                    }
                    if !took {
                        self.chose(&queue, thread);
                    }
                    queue.retain(|waits| waits.thread != thread);
                    (running, lost_at) = (Some(thread), None);
                }
            }
        }
    }

    /// A thread left the core, and a waiting thread got it.
    fn chose(&mut self, queue: &[Waits], thread: u32) {
        let Some(chosen) = queue.iter().find(|waits| waits.thread == thread) else {
            return;
        };
        let lost = queue.iter().filter(|waits| waits.lost).count();
        let woke = queue.len() - lost;
        if lost > 0 && woke > 0 {
            self.either.push((lost as f64, woke as f64, chosen.lost));
        }
        if woke > 1 && !chosen.lost {
            let first = queue.iter().find(|waits| !waits.lost);
            let is_first = first.is_some_and(|first| first.thread == thread);
            self.first.add(f64::from(u8::from(is_first)));
            self.by_chance += 1.0 / woke as f64;
        }
    }

    fn rules(&self) -> PreemptionRules {
        let chance = self.by_chance / f64::from(self.first.count.max(1));
        let first = self
            .first
            .mean()
            .map(|share| (share - chance) / (1.0 - chance));
        PreemptionRules {
            preempt_share: self
                .takes
                .map(|by| by.map(|share| share.mean().unwrap_or(0.0))),
            preempt_after_ns: self
                .preempt_after_ns
                .map(|ns| ns.mean().unwrap_or(0.0) as u64),
            preempted_weight: self.preempted_weight(),
            fifo_share: first.unwrap_or(1.0).clamp(0.0, 1.0),
        }
    }

    /// The weight that reproduces the recorded share of choices of preempted threads.
    fn preempted_weight(&self) -> f64 {
        if self.either.len() < ENOUGH as usize {
            return 1.0;
        }
        let seen = self.either.iter().filter(|one| one.2).count() as f64;
        let expected = |weight: f64| -> f64 {
            let chance =
                |&(lost, woke, _): &(f64, f64, bool)| lost * weight / (lost * weight + woke);
            self.either.iter().map(chance).sum()
        };
        let (mut low, mut high) = (1.0 / MOST_WEIGHT, MOST_WEIGHT);
        for _ in 0..HALVINGS {
            let middle = (low * high).sqrt();
            if expected(middle) < seen {
                low = middle;
            } else {
                high = middle;
            }
        }
        (low * high).sqrt()
    }
}

fn is_client(recording: &Recording, thread: u32) -> usize {
    let thread = recording.threads.get(thread as usize);
    usize::from(thread.is_some_and(|thread| thread.class == ThreadClass::Client))
}

#[cfg(test)]
mod tests {
    use tierwise_recording::{State, StateKind, Thread};

    use super::*;
    use crate::test_states::state;

    /// Each millisecond, thread 0 runs from 0 to 500 µs and wakes thread 1 at 100 µs. In three of four
    /// cases, thread 1 takes the core 4 µs later for 96 µs; else it runs when thread 0 sleeps. Thread 2
    /// wakes at 110 µs, and is always the next of the woken threads, but after the preempted one.
    fn recorded() -> PreemptionRules {
        use StateKind::{Blocked, Cpu, Runnable};
        let mut states: [Vec<State>; 3] = Default::default();
        for (at, takes) in (0..200_000).step_by(1000).zip((0..4).cycle()) {
            let takes = takes > 0;
            let mut add = |thread: u32, parts: &[(u64, u64, StateKind)]| {
                let part = |&(from, to, kind): &(u64, u64, StateKind)| State {
                    waker: 0,
                    ..state(thread, (at + from, at + to), kind)
                };
                states[thread as usize].extend(parts.iter().map(part));
            };
            if takes {
                add(
                    0,
                    &[
                        (0, 104, Cpu),
                        (104, 200, Runnable),
                        (200, 500, Cpu),
                        (500, 1000, Blocked),
                    ],
                );
                add(
                    1,
                    &[
                        (0, 100, Blocked),
                        (100, 104, Runnable),
                        (104, 200, Cpu),
                        (200, 1000, Blocked),
                    ],
                );
            } else {
                add(0, &[(0, 500, Cpu), (500, 1000, Blocked)]);
                add(
                    1,
                    &[
                        (0, 100, Blocked),
                        (100, 500, Runnable),
                        (500, 600, Cpu),
                        (600, 1000, Blocked),
                    ],
                );
            }
            let from = if takes { 500 } else { 600 };
            add(
                2,
                &[
                    (0, 110, Blocked),
                    (110, from, Runnable),
                    (from, 700, Cpu),
                    (700, 1000, Blocked),
                ],
            );
        }
        let thread = |tid| Thread {
            pid: tid,
            tid,
            name: String::new(),
            class: ThreadClass::Session,
        };
        PreemptionRules::of(&Recording {
            states: states.concat(),
            threads: (0..3).map(thread).collect(),
            ..Recording::default()
        })
    }

    #[test]
    fn what_cores_did_is_found_again() {
        let rules = recorded();
        // Thread 2 wakes while thread 1 runs, which did not wake it, or thread 0, which did.
        assert!(
            (rules.preempt_share[1][0] - 150.0 / 250.0).abs() < 0.01,
            "{rules:?}"
        );
        assert!(
            rules.preempt_share[0][0].abs() < 0.01 && rules.preempt_after_ns[1] == 4000,
            "{rules:?}"
        );
        assert!(
            rules.preempted_weight > 100.0 && rules.fifo_share > 0.99,
            "{rules:?}"
        );
    }

    #[test]
    fn nothing_seen_is_first_come_first_served() {
        assert_eq!(
            PreemptionRules::of(&Recording::default()),
            PreemptionRules::default()
        );
    }
}
