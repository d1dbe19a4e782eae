//! Checks of how far the rows can be trusted.

use std::collections::BTreeMap;

use tierwise_recording::{Block, BlockOp, CallKind, Check, NONE, StateKind};

use super::thread_track::{CoreStates, ThreadPhase, ThreadTrack};
use crate::timeline::request_files::RequestHint;

/// Deviation of a thread's parts from its wall time that is allowed.
const SUM_BOUND: f64 = 0.001;
/// Share of states that may rest on events that contradict each other.
const CONTRADICTION_BOUND: f64 = 0.001;
/// Share of calls and requests whose file must be known.
const NAMED_BOUND: f64 = 0.99;

/// Counted over all bursts.
#[derive(Debug, Default)]
pub(super) struct CheckTotals {
    worst_sum: f64,
    states: u64,
    contradictions: u64,
    /// Time in bursts, and in `Cpu` states of each core.
    span_ns: u64,
    busy_ns: BTreeMap<u16, u64>,
    /// Requests that recorded threads made in calls on files.
    requests: NamedCount,
    /// Requests of others, such as write-back.
    others: NamedCount,
    /// Calls that move or sync a file's bytes.
    calls: NamedCount,
}

/// A number of calls or requests, and of those whose file is known.
#[derive(Debug, Default)]
struct NamedCount {
    all: u64,
    named: u64,
}

impl NamedCount {
    fn count(&mut self, file: u32) {
        self.all += 1;
        self.named += u64::from(file != NONE);
    }
}

impl CheckTotals {
    pub(super) fn count_tracks(&mut self, tracks: &[ThreadTrack], span_ns: u64) {
        self.span_ns += span_ns;
        for track in tracks {
            self.contradictions += track.contradictions;
            self.states += track.states.len() as u64;
            self.worst_sum = self.worst_sum.max(state_time_deviation(track, span_ns));
            for state in &track.states {
                if state.kind == StateKind::Cpu {
                    *self.busy_ns.entry(state.cpu).or_default() += state.end_ns - state.start_ns;
                }
            }
            self.count_calls(track);
        }
    }

    fn count_calls(&mut self, track: &ThreadTrack) {
        for call in &track.calls {
            let moves = matches!(
                call.kind,
                CallKind::Read | CallKind::Write | CallKind::Sync | CallKind::Resize
            );
            if moves && !call.failed {
                self.calls.count(call.file);
            }
        }
    }

    /// Requests for the file system's own structures, flushes and discards are of no file. Those of other
    /// programs, of page faults and of write-back may be of files that nobody asked about: a device may serve more
    /// than the database.
    pub(super) fn count_blocks<'a>(
        &mut self,
        asked: impl Iterator<Item = (&'a Block, &'a RequestHint)>,
    ) {
        for (block, hint) in asked {
            if block.meta || !matches!(block.op, BlockOp::Read | BlockOp::Write) {
                continue;
            }
            match hint.is_of_file_call() {
                true => self.requests.count(block.file),
                false => self.others.count(block.file),
            }
        }
    }

    pub(super) fn checks(&self, cores: &CoreStates) -> Vec<Check> {
        vec![
            self.sums(),
            silent_cores_check(cores),
            self.overfull_cores(),
            self.contradicting(),
            named_share_check("calls name their file", &self.calls),
            self.requests_named(),
        ]
    }

    fn sums(&self) -> Check {
        let (worst, bound) = (self.worst_sum * 100.0, SUM_BOUND * 100.0);
        Check {
            name: "parts of each thread sum to its time".to_owned(),
            passed: self.worst_sum <= SUM_BOUND,
            detail: format!("off by {worst:.4} % at most; bound {bound:.1} %"),
        }
    }

    fn requests_named(&self) -> Check {
        let name = "block requests made in calls name their file";
        let mut check = named_share_check(name, &self.requests);
        let others = format!("; of others {} of {}", self.others.named, self.others.all);
        check.detail.push_str(&others);
        check
    }

    fn overfull_cores(&self) -> Check {
        let busiest = self.busy_ns.values().copied().max().unwrap_or(0);
        let share = busiest as f64 / self.span_ns.max(1) as f64;
        let percent = share * 100.0;
        Check {
            name: "no core runs two threads at once".to_owned(),
            passed: share <= 1.0 + SUM_BOUND,
            detail: format!(
                "recorded threads ran on one core for {percent:.1} % of the time at most"
            ),
        }
    }

    fn contradicting(&self) -> Check {
        let (wrong, states) = (self.contradictions, self.states);
        let bound = CONTRADICTION_BOUND * 100.0;
        Check {
            name: "events do not contradict each other".to_owned(),
            passed: wrong as f64 / states.max(1) as f64 <= CONTRADICTION_BOUND,
            detail: format!("{wrong} of {states} states; bound {bound:.1} %"),
        }
    }
}

/// How far a thread's states are from the time it lived in the burst.
fn state_time_deviation(track: &ThreadTrack, span_ns: u64) -> f64 {
    let sum: u64 = track.states.iter().map(|s| s.end_ns - s.start_ns).sum();
    let whole = !track.born && track.phase != ThreadPhase::Gone;
    let lived = match (track.states.first(), track.states.last()) {
        (Some(_), Some(_)) if whole => span_ns,
        (Some(first), Some(last)) => last.end_ns - first.start_ns,
        _ => return 0.0,
    };
    (lived as f64 - sum as f64).abs() / lived.max(1) as f64
}

/// A core whose switches are not reported is no failure: they are inferred.
fn silent_cores_check(cores: &CoreStates) -> Check {
    let silent = cores.without_switches();
    let (missing, seen) = cores.arrivals();
    let which = match silent.as_slice() {
        [] => "switches from idle are recorded on every core".to_owned(),
        [cpu] => format!("switches from idle are not recorded on core {cpu}"),
        cpus => format!("switches from idle are not recorded on cores {cpus:?}"),
    };
    Check {
        name: "switches from idle are known".to_owned(),
        passed: true,
        detail: format!("{which}; {missing} inferred, {seen} recorded"),
    }
}

fn named_share_check(name: &str, counted: &NamedCount) -> Check {
    let (named, all) = (counted.named, counted.all);
    Check {
        name: name.to_owned(),
        passed: all == 0 || named as f64 / all as f64 >= NAMED_BOUND,
        detail: format!("{named} of {all}; bound {:.0} %", NAMED_BOUND * 100.0),
    }
}
