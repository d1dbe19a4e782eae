//! What the recording observed, corrected for its own overhead.

use std::collections::BTreeMap;

use tierwise_recording::{Role, StateKind};

use crate::Observed;
use crate::index::view::View;
use crate::log::flushes::LogFlushes;
use crate::storage::devices::sample;
use crate::timeline::segments::SegmentKind;
use crate::timeline::time_category::TimeCategory;
use crate::timeline::time_use::TimeUse;
use crate::timeline::wait::WaitCause;
use crate::transactions::active_span::{active_span, within_bursts};
use crate::transactions::arrivals::arrive;
use crate::transactions::counted::{Counted, rate_ratio};
use crate::transactions::turn_meaning::Meaning;
use crate::transactions::turns::{RawTurn, waits_for};

/// Observed values of all sessions.
pub(crate) fn observed(
    view: &View<'_>,
    flushes: &LogFlushes,
    sessions: &[Vec<RawTurn>],
    meanings: &[Vec<Meaning>],
    counted: Option<Counted>,
) -> Observed {
    let span_ns = view.span_ns();
    let measured = rate_ratio(view);
    let ratio = measured.unwrap_or(1.0);
    let per_s = |count: usize| count as f64 / (span_ns.max(1) as f64 / 1e9) / ratio;
    let ends = meanings
        .iter()
        .flatten()
        .filter(|meaning| meaning.ends)
        .count();
    let counted_per_shown = counted.and_then(|counted| counted.per_shown(view, sessions, meanings));
    let turns = sessions.iter().map(Vec::len).sum();
    let sliced = counted_per_shown.is_none() && sessions.iter().flatten().all(|turn| turn.even);
    let mut latencies = latencies(sessions, meanings);
    for latency in &mut latencies {
        *latency = (*latency as f64 * ratio) as u64;
    }
    let mut latencies = sample(latencies);
    latencies.sort_unstable();
    let times = time_uses(view, flushes, sessions);
    Observed {
        span_ns,
        active_ns: active_span(view, sessions)
            .map_or(0, |span| within_bursts(&view.recording.about.bursts, span)),
        whole: view.is_whole(),
        turns_per_s: per_s(turns),
        counted_per_shown,
        sliced,
        transactions_per_s: per_s(ends) * counted_per_shown.unwrap_or(1.0),
        latencies_ns: latencies,
        commits_per_flush: commits(sessions, meanings) as f64 / flushes.all.len().max(1) as f64,
        busy_share: busy_share(view),
        rate_ratio: measured,
        arrive: arrive(view, sessions, meanings),
        shares: shares(&times),
        waits: waits(times),
    }
}

/// Commits of all sessions, visible and invisible.
pub(crate) fn commits(sessions: &[Vec<RawTurn>], meanings: &[Vec<Meaning>]) -> usize {
    let seen: usize = sessions
        .iter()
        .flatten()
        .map(|turn| turn.commits.len())
        .sum();
    let hidden = meanings
        .iter()
        .flatten()
        .filter(|m| m.hidden_commit_ns.is_some())
        .count();
    seen + hidden
}

/// From the first request of each transaction until its reply.
fn latencies(sessions: &[Vec<RawTurn>], meanings: &[Vec<Meaning>]) -> Vec<u64> {
    let mut latencies = Vec::new();
    for (turns, meanings) in sessions.iter().zip(meanings) {
        let mut begin = None;
        for (turn, meaning) in turns.iter().zip(meanings) {
            if !turn.complete {
                begin = None;
                continue;
            }
            begin = begin.or(Some(turn.start_ns()));
            if meaning.ends
                && let Some(begin_ns) = begin.take()
            {
                latencies.push(replied_ns(turn).saturating_sub(begin_ns));
            }
        }
    }
    latencies
}

/// When a session began to wait for its client's next request.
pub(crate) fn replied_ns(turn: &RawTurn) -> u64 {
    let reply_ns = turn.reply_ns.unwrap_or(u64::MAX);
    let mut segments = turn.segments.iter();
    let for_client = segments
        .find(|segment| waits_for(segment, WaitCause::Client) && segment.start_ns >= reply_ns);
    for_client.map_or(turn.end_ns(), |segment| segment.start_ns)
}

/// Processor time of all recorded threads, of the servers of emulated disks and of others.
fn busy_share(view: &View<'_>) -> f64 {
    let states = view.all_states().iter();
    let on_core = states.filter(|state| state.kind == StateKind::Cpu);
    let busy_ns: u64 = on_core.map(|state| state.end_ns - state.start_ns).sum();
    let cores = f64::from(view.recording.about.machine.cores.max(1));
    let server_ns = view.storage_cpu().map_or(0, |used| used.server_ns);
    let share = (busy_ns as f64 + server_ns as f64) / (cores * view.span_ns().max(1) as f64);
    (share + view.recording.about.foreign_cpu_share).min(1.0)
}

/// The sessions' time by category, and the role of the file where one was waited for.
type TimeUses = BTreeMap<(TimeCategory, Option<Role>), u64>;

fn time_uses(view: &View<'_>, flushes: &LogFlushes, sessions: &[Vec<RawTurn>]) -> TimeUses {
    let mut times = TimeUses::new();
    for turn in sessions.iter().flatten() {
        let states = view.states(turn.thread);
        for segment in &turn.segments {
            let what = match segment.kind {
                SegmentKind::Cpu { .. } | SegmentKind::Call { .. } => (TimeCategory::Cpu, None),
                SegmentKind::Ready => (TimeCategory::Runnable, None),
                SegmentKind::Wait { cause, state } => {
                    let state = &states[state as usize];
                    let found = TimeUse::of_wait(view, flushes, state, cause);
                    (found.category, found.role(view))
                }
            };
            *times.entry(what).or_default() += segment.time_ns();
        }
    }
    times
}

/// Share of the sessions' time of each category.
fn shares(times: &TimeUses) -> Vec<(String, f64)> {
    let total = times.values().sum::<u64>().max(1) as f64;
    let of = |category: TimeCategory| {
        let times = times.iter().filter(|((what, _), _)| *what == category);
        times.map(|(_, time_ns)| time_ns).sum::<u64>() as f64
    };
    TimeCategory::ALL
        .iter()
        .map(|category| (category.name().to_owned(), of(*category) / total))
        .collect()
}

/// The sessions' time off any core.
fn waits(times: TimeUses) -> Vec<(TimeCategory, Option<Role>, u64)> {
    let waits = times
        .into_iter()
        .filter(|((what, _), time_ns)| *what != TimeCategory::Cpu && *time_ns > 0);
    waits
        .map(|((what, role), time_ns)| (what, role, time_ns))
        .collect()
}
