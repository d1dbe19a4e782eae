//! One thread's time in one burst as segments in order: on a core, ready, waiting, and the calls between them.

use tierwise_recording::{Call, State, StateKind};

use crate::constants::{COLD_NS, COLD_SHARE};
use crate::timeline::wait::{WaitCause, wait_cause};
use crate::view::View;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SegmentKind<'a> {
    /// On a core; whether off any core just before.
    Cpu {
        waited: bool,
    },
    Ready,
    Wait {
        cause: WaitCause,
        state: &'a State,
    },
    /// A call begins here; its row in the recording.
    Call {
        row: u32,
        call: &'a Call,
    },
}

/// A segment; a call's is empty, its time is in the segments that follow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Segment<'a> {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) kind: SegmentKind<'a>,
}

impl<'a> Segment<'a> {
    fn new(start_ns: u64, end_ns: u64, kind: SegmentKind<'a>) -> Self {
        Self {
            start_ns,
            end_ns,
            kind,
        }
    }

    pub(crate) fn time_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }

    pub(crate) fn call(&self) -> Option<&'a Call> {
        match self.kind {
            SegmentKind::Call { call, .. } => Some(call),
            _ => None,
        }
    }

    /// The cause of a wait, and its state.
    pub(crate) fn wait(&self) -> Option<(WaitCause, &'a State)> {
        match self.kind {
            SegmentKind::Wait { cause, state } => Some((cause, state)),
            _ => None,
        }
    }

    pub(crate) fn waits_for(&self, what: WaitCause) -> bool {
        self.wait().is_some_and(|(cause, _)| cause == what)
    }
}

/// Time on a core in some segments.
pub(crate) fn cpu_ns(segments: &[Segment<'_>]) -> u64 {
    let on_core = |segment: &&Segment| matches!(segment.kind, SegmentKind::Cpu { .. });
    segments.iter().filter(on_core).map(Segment::time_ns).sum()
}

/// The segments of a thread in each burst, with the burst's number.
pub(crate) fn segments_of<'a>(view: &View<'a>, thread: u32) -> Vec<(u32, Vec<Segment<'a>>)> {
    let (states, calls) = (view.states(thread), view.calls(thread));
    let mut found = Vec::new();
    for (number, burst) in (0..).zip(&view.recording.about.bursts) {
        let from = states.partition_point(|state| state.end_ns <= burst.start_ns);
        let inside = |state: &State| state.start_ns < burst.end_ns;
        let to = from + states[from..].partition_point(inside);
        if from == to {
            continue;
        }
        let first = calls.partition_point(|call| call.start_ns < burst.start_ns);
        let last = calls.partition_point(|call| call.start_ns < burst.end_ns);
        let row = view.first_call(thread) + first as u32;
        let calls = (row..).zip(&calls[first..last.max(first)]);
        found.push((number, merged(view, &states[from..to], calls)));
    }
    found
}

/// Merges states and calls by time.
fn merged<'a>(
    view: &View<'a>,
    states: &'a [State],
    calls: impl Iterator<Item = (u32, &'a Call)>,
) -> Vec<Segment<'a>> {
    let mut segments = Vec::with_capacity(states.len());
    let mut calls = calls.peekable();
    let begins = |time_ns: u64, (row, call): (u32, &'a Call)| {
        Segment::new(time_ns, time_ns, SegmentKind::Call { row, call })
    };
    let mut was_off_core = false;
    for state in states {
        let (mut from_ns, end_ns) = (state.start_ns, state.end_ns);
        let mut on_core = |from_ns: u64, to_ns: u64| {
            (to_ns > from_ns).then(|| {
                let waited = std::mem::take(&mut was_off_core);
                Segment::new(from_ns, to_ns, SegmentKind::Cpu { waited })
            })
        };
        match state.kind {
            StateKind::Cpu => {
                while let Some(next) = calls.next_if(|(_, call)| call.start_ns < end_ns) {
                    let call_ns = next.1.start_ns.max(from_ns);
                    segments.extend(on_core(from_ns, call_ns));
                    segments.push(begins(call_ns, next));
                    from_ns = call_ns;
                }
                segments.extend(on_core(from_ns, end_ns));
            }
            StateKind::Runnable => segments.push(Segment::new(from_ns, end_ns, SegmentKind::Ready)),
            StateKind::Blocked => {
                while let Some(next) = calls.next_if(|(_, call)| call.start_ns <= from_ns) {
                    segments.push(begins(next.1.start_ns, next));
                }
                let cause = wait_cause(view, state);
                let wait = SegmentKind::Wait { cause, state };
                segments.push(Segment::new(from_ns, end_ns, wait));
            }
        }
        was_off_core |= state.kind != StateKind::Cpu;
    }
    segments.extend(calls.map(|next| begins(next.1.start_ns, next)));
    segments
}

/// Pieces of segments; those on a core are split at any of the given instants, which are sorted.
pub(crate) fn split_at<'a>(segments: Vec<Segment<'a>>, instants: &[u64]) -> Vec<Segment<'a>> {
    let mut cut = Vec::with_capacity(segments.len() + instants.len());
    let mut instants = instants.iter().copied().peekable();
    for mut rest in segments {
        while instants.next_if(|&at_ns| at_ns <= rest.start_ns).is_some() {}
        while let Some(at_ns) = instants.next_if(|&at_ns| at_ns < rest.end_ns) {
            if let SegmentKind::Cpu { .. } = rest.kind {
                cut.push(Segment {
                    end_ns: at_ns,
                    ..rest
                });
                rest.kind = SegmentKind::Cpu { waited: false };
                rest.start_ns = at_ns;
            }
        }
        cut.push(rest);
    }
    cut
}

// What it costs to run on a core that was idle, and what recorded runs paid.

/// Factor of the processor time of a run that starts on a core which was idle for a time, over that of one which was
/// busy just before: 1 + s (1 − exp(−w / t)).
///
/// Models: caches, translations and branch predictors that others' work, or a hypervisor, took over meanwhile, and the
/// clock frequency of a core that slept. Assumption: in proportion to the run, whatever it does. Source:
/// docs/evidence/work-calibration.md#cold-cores.
#[must_use]
pub fn cold_factor(idle_ns: u64) -> f64 {
    1.0 + COLD_SHARE.get() * (1.0 - (-(idle_ns as f64) / COLD_NS.get()).exp())
}

/// Mean of [`cold_factor`] over the processor time of recorded threads; 1 where none ran. A thread starts on the core
/// that was idle for the shortest time, as in a replay.
pub(crate) fn mean_cold_factor(states: &[State]) -> f64 {
    let mut runs: Vec<&State> = states
        .iter()
        .filter(|state| state.kind == StateKind::Cpu)
        .collect();
    runs.sort_unstable_by_key(|state| state.start_ns);
    let mut last_end_ns: Vec<Option<u64>> = Vec::new();
    let (mut cold_ns, mut warm_ns) = (0.0, 0.0);
    for state in runs {
        let idle_since = last_end_ns.iter().flatten();
        let idle_since = idle_since.filter(|end_ns| **end_ns <= state.start_ns).max();
        if let Some(end_ns) = idle_since {
            let ran_ns = (state.end_ns - state.start_ns) as f64;
            cold_ns += ran_ns;
            warm_ns += ran_ns / cold_factor(state.start_ns - end_ns);
        }
        let core = usize::from(state.cpu);
        last_end_ns.resize(last_end_ns.len().max(core + 1), None);
        last_end_ns[core] = Some(state.end_ns);
    }
    if warm_ns > 0.0 {
        cold_ns / warm_ns
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_states::state;

    #[test]
    fn runs_right_after_others_are_warm_and_late_ones_cold() {
        let warm: Vec<State> = (0..10)
            .map(|at| state(0, (at * 100, at * 100 + 100), StateKind::Cpu))
            .collect();
        assert!((mean_cold_factor(&warm) - 1.0).abs() < 1e-9);
        let cold: Vec<State> = (0..10)
            .map(|at| state(0, (at * 10_000, at * 10_000 + 100), StateKind::Cpu))
            .collect();
        let expected = cold_factor(9_900_000);
        assert!((mean_cold_factor(&cold) - expected).abs() < 1e-9);
        assert!((mean_cold_factor(&[]) - 1.0).abs() < 1e-9);
    }
}
