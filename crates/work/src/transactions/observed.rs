//! What the recording observed, corrected for its own overhead.

use std::collections::BTreeMap;

use tierwise_recording::Role;

use crate::rows::{Rows, cpu_ns};
use crate::storage::devices::sample;
use crate::timeline::segments::SegmentKind;
use crate::timeline::wait::{role_of_use, wait_use};
use crate::transactions::active_span::active_span;
use crate::transactions::arrivals::arrive;
use crate::transactions::counted::{Counted, rate_ratio};
use crate::transactions::turns::RawTurn;
use crate::view::View;
use crate::{Observed, TimeCategory};

pub(crate) fn observed(
    view: &View<'_>,
    sessions: &[Vec<RawTurn<'_>>],
    counted: Option<Counted>,
) -> Observed {
    let span_ns = view.span_ns();
    let measured = rate_ratio(view);
    let ratio = measured.unwrap_or(1.0);
    let per_s = |count: usize| count as f64 / (span_ns.max(1) as f64 / 1e9) / ratio;
    let turns = || sessions.iter().flatten();
    let ends = turns().filter(|turn| turn.ends).count();
    let counted_per_shown = counted.and_then(|counted| counted.per_shown(view, sessions));
    let latencies = latencies(sessions).into_iter();
    let latencies = latencies.map(|latency_ns| (latency_ns as f64 * ratio) as u64);
    let mut latencies_ns = sample(latencies.collect());
    latencies_ns.sort_unstable();
    let active = active_span(view, sessions);
    let times = time_uses(view, sessions);
    let waits = times
        .iter()
        .filter(|((what, _), time_ns)| *what != TimeCategory::Cpu && **time_ns > 0);
    Observed {
        span_ns,
        active_ns: active.map_or(0, |(from_ns, to_ns)| view.in_bursts_ns(from_ns, to_ns)),
        whole: view.is_whole(),
        turns_per_s: per_s(turns().count()),
        counted_per_shown,
        sliced: counted_per_shown.is_none() && turns().all(|turn| turn.even),
        transactions_per_s: per_s(ends) * counted_per_shown.unwrap_or(1.0),
        latencies_ns,
        commits_per_flush: commits(sessions) as f64 / view.flushes.all.len().max(1) as f64,
        busy_share: busy_share(view),
        rate_ratio: measured,
        arrive: arrive(view, sessions),
        shares: shares(&times),
        waits: waits
            .map(|(&(what, role), &time_ns)| (what, role, time_ns))
            .collect(),
    }
}

/// Commits of all sessions, visible and invisible.
pub(crate) fn commits(sessions: &[Vec<RawTurn<'_>>]) -> usize {
    let turns = sessions.iter().flatten();
    turns
        .map(|turn| turn.commits.len() + usize::from(turn.hidden_commit_ns.is_some()))
        .sum()
}

/// From the first request of each transaction until its reply.
fn latencies(sessions: &[Vec<RawTurn<'_>>]) -> Vec<u64> {
    let mut latencies = Vec::new();
    for turns in sessions {
        let mut begin = None;
        for turn in turns {
            if !turn.complete {
                begin = None;
                continue;
            }
            let begin_ns = *begin.get_or_insert(turn.start_ns());
            if turn.ends {
                latencies.push(turn.replied_ns().saturating_sub(begin_ns));
                begin = None;
            }
        }
    }
    latencies
}

/// Processor time of all recorded threads, of the servers of emulated disks and of others.
fn busy_share(rows: &Rows<'_>) -> f64 {
    let about = &rows.recording.about;
    let busy_ns = cpu_ns(&rows.recording.states);
    let cores = f64::from(about.machine.cores.max(1));
    let server_ns = rows.storage_cpu_ns(|used| used.server_ns);
    let share = (busy_ns as f64 + server_ns as f64) / (cores * rows.span_ns().max(1) as f64);
    (share + about.foreign_cpu_share).min(1.0)
}

/// The sessions' time by category, and the role of the file where one was waited for.
type TimeUses = BTreeMap<(TimeCategory, Option<Role>), u64>;

fn time_uses(view: &View<'_>, sessions: &[Vec<RawTurn<'_>>]) -> TimeUses {
    let mut times = TimeUses::new();
    for segment in sessions.iter().flatten().flat_map(|turn| &turn.segments) {
        let what = match segment.kind {
            SegmentKind::Cpu { .. } | SegmentKind::Call { .. } => (TimeCategory::Cpu, None),
            SegmentKind::Ready => (TimeCategory::Runnable, None),
            SegmentKind::Wait { cause, state } => {
                let found = wait_use(view, state, cause);
                (found.0, role_of_use(view, found))
            }
        };
        *times.entry(what).or_default() += segment.time_ns();
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
    let all = TimeCategory::ALL.iter();
    all.map(|category| (category.name().to_owned(), of(*category) / total))
        .collect()
}
