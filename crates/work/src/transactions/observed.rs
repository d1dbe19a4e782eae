//! What the recording observed, corrected for its own overhead, and transactions counted in addition to those that
//! the events show.

use std::collections::BTreeMap;

use tierwise_recording::Role;

use crate::constants::{FEW_SHARE, RECORDED_LEAST_RATIO, RECORDED_MOST_WIDTH};
use crate::recording_rows::{RecordingRows, running_ns};
use crate::recording_view::RecordingView;
use crate::storage::evenly_sampled;
use crate::timeline::{ThreadSegmentKind, WaitCause, role_of_use, wait_time_use};
use crate::transactions::boundaries::are_few_transactions;
use crate::transactions::sessions::active_span;
use crate::transactions::turns::RawTurn;
use crate::{ObservedFigures, TimeCategory};

/// The 97.5th percentiles of Student's t-distribution, from one degree of freedom on, and their limit.
const STUDENT: [f64; 10] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23];
const STUDENT_MANY: f64 = 2.1;

pub(crate) fn observed_figures(
    view: &RecordingView<'_>,
    sessions: &[Vec<RawTurn<'_>>],
    counted: Option<CountedTransactions>,
) -> ObservedFigures {
    let span_ns = view.span_ns();
    let measured = recorded_rate_ratio(view);
    let ratio = measured.unwrap_or(1.0);
    let per_s = |count: usize| count as f64 / (span_ns.max(1) as f64 / 1e9) / ratio;
    let turns = || sessions.iter().flatten();
    let ends = turns().filter(|turn| turn.ends).count();
    let seen = turns().filter(|turn| turn.ends && !turn.even).count();
    let counted_per_shown = counted.and_then(|counted| counted.per_shown(view, sessions));
    let latencies = transaction_latencies(sessions).into_iter();
    let latencies = latencies.map(|latency_ns| (latency_ns as f64 * ratio.min(1.0)) as u64);
    let mut latencies_ns = evenly_sampled(latencies.collect());
    latencies_ns.sort_unstable();
    let active = active_span(view, sessions);
    let times = session_time_uses(view, sessions);
    let waits = times
        .iter()
        .filter(|((what, _), time_ns)| *what != TimeCategory::Cpu && **time_ns > 0);
    ObservedFigures {
        span_ns,
        active_ns: active.map_or(0, |(from_ns, to_ns)| view.in_bursts_ns(from_ns, to_ns)),
        whole: view.is_whole(),
        turns_per_s: per_s(turns().count()),
        counted_per_shown,
        sliced: counted_per_shown.is_none() && are_few_transactions(seen, ends),
        transactions_per_s: per_s(ends) * counted_per_shown.unwrap_or(1.0),
        latencies_ns,
        commits_per_flush: all_commits(sessions) as f64 / view.flushes.all.len().max(1) as f64,
        busy_share: busy_processor_share(view),
        rate_ratio: measured,
        cpu_ratio: recorded_cpu_ratio(view),
        arrive: arrives_by_schedule(view, sessions),
        shares: category_shares(&times),
        waits: waits
            .map(|(&(what, role), &time_ns)| (what, role, time_ns))
            .collect(),
    }
}

/// Commits of all sessions, visible and invisible.
pub(crate) fn all_commits(sessions: &[Vec<RawTurn<'_>>]) -> usize {
    let turns = sessions.iter().flatten();
    turns
        .map(|turn| turn.commits.len() + usize::from(turn.hidden_commit_ns.is_some()))
        .sum()
}

/// From the first request of each transaction until its reply.
fn transaction_latencies(sessions: &[Vec<RawTurn<'_>>]) -> Vec<u64> {
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
fn busy_processor_share(rows: &RecordingRows<'_>) -> f64 {
    let about = &rows.recording.about;
    let busy_ns = running_ns(&rows.recording.states);
    let cores = f64::from(about.machine.cores.max(1));
    let server_ns = rows.storage_cpu_ns(|used| used.server_ns);
    let share = (busy_ns as f64 + server_ns as f64) / (cores * rows.span_ns().max(1) as f64);
    (share + about.foreign_cpu_share).min(1.0)
}

/// The sessions' time by category, and the role of the file where one was waited for.
type SessionTimeUses = BTreeMap<(TimeCategory, Option<Role>), u64>;

fn session_time_uses(view: &RecordingView<'_>, sessions: &[Vec<RawTurn<'_>>]) -> SessionTimeUses {
    let mut times = SessionTimeUses::new();
    for segment in sessions.iter().flatten().flat_map(|turn| &turn.segments) {
        let what = match segment.kind {
            ThreadSegmentKind::Cpu { .. } | ThreadSegmentKind::Call { .. } => {
                (TimeCategory::Cpu, None)
            }
            ThreadSegmentKind::Ready => (TimeCategory::Runnable, None),
            ThreadSegmentKind::Wait { cause, state } => {
                let found = wait_time_use(view, state, cause);
                (found.0, role_of_use(view, found))
            }
        };
        *times.entry(what).or_default() += segment.time_ns();
    }
    times
}

/// Share of the sessions' time of each category.
fn category_shares(times: &SessionTimeUses) -> Vec<(String, f64)> {
    let total = times.values().sum::<u64>().max(1) as f64;
    let of = |category: TimeCategory| {
        let times = times.iter().filter(|((what, _), _)| *what == category);
        times.map(|(_, time_ns)| time_ns).sum::<u64>() as f64
    };
    let all = TimeCategory::ALL.iter();
    all.map(|category| (category.name().to_owned(), of(*category) / total))
        .collect()
}

/// Transactions of a whole recording, counted without tracing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountedTransactions {
    transactions: f64,
    /// Bursts' share of the time.
    bursts: f64,
    /// Rate within bursts over that between them, if that was measured.
    slowed: Option<f64>,
}

impl CountedTransactions {
    /// The count in a recording; none if it has none.
    pub(crate) fn of(rows: &RecordingRows<'_>) -> Option<Self> {
        let about = &rows.recording.about;
        let bursts = (rows.span_ns() as f64 / 1e9 / about.duration_s).min(1.0);
        Some(Self {
            transactions: about.transactions? as f64,
            bursts: Some(bursts).filter(|share| share.is_finite())?,
            slowed: recorded_rate_ratio(rows),
        })
    }

    /// The expected number within bursts.
    pub(crate) fn in_bursts(&self) -> f64 {
        self.if_slowed(self.slowed.unwrap_or(1.0))
    }

    /// The mean of all time lies between the rates of the bursts and of the time between them.
    fn if_slowed(&self, slowed: f64) -> f64 {
        self.transactions * self.bursts * slowed / (1.0 - self.bursts * (1.0 - slowed))
    }

    /// Counted transactions per transaction that the turns show. Where calls do not tell requests apart,
    /// read-only requests are known by their number alone. Otherwise the count is used if it differs by more
    /// than the bursts differ among themselves, and by more than recording may have slowed them: the turns
    /// then miss some transactions.
    fn per_shown(&self, rows: &RecordingRows<'_>, sessions: &[Vec<RawTurn<'_>>]) -> Option<f64> {
        let mut ends = vec![0.0; rows.recording.about.bursts.len()];
        for turn in sessions.iter().flatten().filter(|turn| turn.ends) {
            ends[turn.burst as usize] += 1.0;
        }
        let shown = ends.iter().sum::<f64>();
        if shown == 0.0 || self.transactions == 0.0 {
            return None;
        }
        let each = self.in_bursts() / shown;
        if !sessions.iter().flatten().any(|turn| turn.served) {
            return Some(each.max(1.0));
        }
        let slowest = self.if_slowed(self.slowed.unwrap_or(RECORDED_LEAST_RATIO.get())) / shown;
        let off = (slowest - 1.0).max(1.0 - each);
        (off > FEW_SHARE.get().max(burst_chance_error(rows, &ends)?)).then_some(each)
    }
}

/// Rate with recording over the rate without, if that is known. Above 1 where more work fell into the bursts by chance.
fn recorded_rate_ratio(rows: &RecordingRows<'_>) -> Option<f64> {
    let cost = rows.recording.about.cost.as_ref()?;
    let ratio = informative_ratio(cost.rate_ratio, (cost.rate_ratio_low, cost.rate_ratio_high))?;
    let least = RECORDED_LEAST_RATIO.get();
    Some(ratio.clamp(least, 1.0 / least))
}

/// Processor time for a wait with recording over that without, if that is known. Below 1 by chance alone.
fn recorded_cpu_ratio(rows: &RecordingRows<'_>) -> Option<f64> {
    let cost = rows.recording.about.cost.as_ref()?;
    let ratio = informative_ratio(cost.cpu_ratio, (cost.cpu_ratio_low, cost.cpu_ratio_high))?;
    Some(ratio.clamp(1.0, 1.0 / RECORDED_LEAST_RATIO.get()))
}

/// A ratio whose interval says something.
fn informative_ratio(ratio: f64, (low, high): (f64, f64)) -> Option<f64> {
    (low > 0.0 && high <= RECORDED_MOST_WIDTH.get() * low).then_some(ratio)
}

/// Possible random difference between the mean rate of the bursts and that of all time, as a share of it.
/// None for a single burst.
fn burst_chance_error(rows: &RecordingRows<'_>, ends: &[f64]) -> Option<f64> {
    if rows.is_whole() {
        let shown = ends.iter().sum::<f64>();
        return Some(STUDENT_MANY / shown.sqrt());
    }
    let bursts = rows.recording.about.bursts.iter();
    let rates = bursts.zip(ends).map(|(burst, ends)| {
        let time_ns = burst.end_ns.saturating_sub(burst.start_ns).max(1);
        ends / time_ns as f64
    });
    error_of_mean(&rates.collect::<Vec<_>>())
}

/// Half of the 95 % interval of a mean, as a share of it; none for a single value.
fn error_of_mean(values: &[f64]) -> Option<f64> {
    let others = values.len().checked_sub(1).filter(|&others| others > 0)?;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / others as f64 / values.len() as f64).sqrt();
    let student = STUDENT.get(others - 1).copied().unwrap_or(STUDENT_MANY);
    Some(student * error / mean)
}

// Whether transactions arrive by a schedule of their own, or each client begins its next one after a pause.
//
// Poisson arrivals see time averages (Wolff, *Operations Research* 30(2), 1982): if transactions arrive whether or
// not earlier ones are done, the number of idle sessions that one finds is distributed as it is over time. If each
// idle session begins its next one after a pause, transactions begin more often while more sessions are idle. The
// likelihoods of both are compared over all begins.
//
// Assumption: pauses are random. Of pauses of one length, sessions that one flush released end together, which looks
// like a schedule; so pauses that hardly vary are no arrivals.

/// Fewer begins tell nothing. Chosen.
const LEAST_BEGINS: usize = 100;
/// Shorter pauses are the client's own work. Chosen: some wakeups of its thread.
const LEAST_PAUSE_NS: f64 = 1_000_000.0;
/// Least variation of pauses, standard deviation over mean. Chosen: a timer's is below 0.05, that of the longest of
/// ten gaps between arrivals above 0.3.
const LEAST_VARIATION: f64 = 0.2;
/// Logarithm of the odds from which arrivals are believed. Chosen: 20 to 1.
const BELIEVED_LN: f64 = 3.0;

/// What a session begins to be at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SessionState {
    Idle,
    /// Within a transaction that began then.
    Begins,
    /// Within one that had begun before the burst.
    Busy,
}

/// When a session's state changed, and to which.
type SessionStateChange = (u64, SessionState);

/// Whether transactions arrive by a schedule.
pub(crate) fn arrives_by_schedule(rows: &RecordingRows<'_>, sessions: &[Vec<RawTurn<'_>>]) -> bool {
    let mut bursts = vec![Vec::new(); rows.recording.about.bursts.len()];
    let mut pauses = Vec::new();
    for turns in sessions {
        add_session_changes(&mut bursts, &mut pauses, turns);
    }
    if pauses.len() < LEAST_BEGINS {
        return false;
    }
    let mean = pauses.iter().sum::<f64>() / pauses.len() as f64;
    let squares: f64 = pauses.iter().map(|pause| (pause - mean).powi(2)).sum();
    let variation = (squares / pauses.len() as f64).sqrt() / mean;
    if mean < LEAST_PAUSE_NS || variation < LEAST_VARIATION {
        return false;
    }
    let spans = rows.recording.about.bursts.iter();
    let spans = spans.map(|burst| (burst.start_ns, burst.end_ns));
    schedule_log_odds(spans.zip(bursts), sessions.len()) > BELIEVED_LN
}

/// Adds when a session became idle and busy, and its pauses. It is idle at first.
fn add_session_changes(
    bursts: &mut [Vec<SessionStateChange>],
    pauses_ns: &mut Vec<f64>,
    turns: &[RawTurn<'_>],
) {
    let mut burst = None;
    let (mut idle, mut since_ns) = (true, None);
    for turn in turns {
        let changes = &mut bursts[turn.burst as usize];
        let time_ns = turn.start_ns();
        let first = burst.replace(turn.burst) != Some(turn.burst);
        if first {
            (idle, since_ns) = (true, None);
        }
        if first && awaits_its_client(turn) {
            continue;
        }
        if idle {
            let to = if first {
                SessionState::Busy
            } else {
                SessionState::Begins
            };
            changes.push((time_ns, to));
            let paused = since_ns.take();
            pauses_ns.extend(paused.map(|since_ns| time_ns.saturating_sub(since_ns) as f64));
            idle = false;
        }
        if turn.ends && turn.reply_ns.is_some() {
            let time_ns = turn.replied_ns();
            changes.push((time_ns, SessionState::Idle));
            (idle, since_ns) = (true, Some(time_ns));
        }
    }
}

/// Whether a turn shows only the wait for its client's request.
fn awaits_its_client(turn: &RawTurn<'_>) -> bool {
    let mut segments = turn.segments.iter();
    turn.reply_ns.is_none() && segments.any(|segment| segment.waits_for(WaitCause::Client))
}

/// Logarithm of the odds of a schedule over pauses: for each begin, of its likelihood under either.
fn schedule_log_odds(
    bursts: impl Iterator<Item = ((u64, u64), Vec<SessionStateChange>)>,
    sessions: usize,
) -> f64 {
    let (mut begins, mut logs) = (0.0, 0.0);
    let (mut open_ns, mut idle_ns) = (0.0, 0.0);
    for ((start_ns, end_ns), mut changes) in bursts {
        changes.sort_by_key(|change| change.0);
        let (mut idle, mut at_ns) = (sessions as f64, start_ns);
        let mut pass = |idle: f64, from_ns: u64, to_ns: u64| {
            let time_ns = to_ns.saturating_sub(from_ns) as f64;
            idle_ns += idle * time_ns;
            open_ns += if idle > 0.0 { time_ns } else { 0.0 };
        };
        for (time_ns, to) in changes {
            pass(idle, at_ns, time_ns);
            at_ns = time_ns;
            match to {
                SessionState::Idle => idle = (idle + 1.0).min(sessions as f64),
                to => {
                    if to == SessionState::Begins {
                        (begins, logs) = (begins + 1.0, logs + idle.max(1.0).ln());
                    }
                    idle = (idle - 1.0).max(0.0);
                }
            }
        }
        pass(idle, at_ns, end_ns);
    }
    // A schedule's rate is begins over open time; a session's, begins over idle time of all.
    match open_ns > 0.0 && idle_ns > 0.0 {
        true => begins * (idle_ns / open_ns).ln() - logs,
        false => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_that_differ_do_not_tell_the_mean() {
        assert_eq!(error_of_mean(&[5.0, 5.0, 5.0]), Some(0.0));
        assert_eq!(error_of_mean(&[5.0]), None);
        let error = error_of_mean(&[4.0, 6.0]).expect("of two");
        assert!((error - 12.71 * 0.2).abs() < 1e-9, "{error}");
    }

    #[test]
    fn bursts_that_recording_slows_hold_fewer() {
        let counted = |bursts, slowed| CountedTransactions {
            transactions: 1_000.0,
            bursts,
            slowed,
        };
        assert_eq!(counted(0.1, None).in_bursts(), 100.0);
        // 100 of 1,000 ms at 0.8 of the rate: 80 of 980.
        let slowed = counted(0.1, Some(0.8)).in_bursts();
        assert!((slowed - 80_000.0 / 980.0).abs() < 1e-9, "{slowed}");
        assert_eq!(counted(1.0, Some(0.8)).in_bursts(), 1_000.0);
    }

    const SECOND_NS: u64 = 1_000_000_000;
    const SESSIONS: usize = 8;

    /// Random numbers of a generator by Lehmer, in (0, 1].
    struct Draw(u64);

    impl Draw {
        fn exponential_ns(&mut self, mean_ns: f64) -> u64 {
            self.0 = self.0 * 48_271 % 2_147_483_647;
            (-(self.0 as f64 / 2_147_483_647.0).ln() * mean_ns) as u64
        }
    }

    /// Ten seconds of sessions that serve for 20 ms, simulated from end to end.
    fn odds(mut next_ns: impl FnMut(&mut Draw, u64) -> u64) -> f64 {
        let mut draw = Draw(7);
        let mut changes = Vec::new();
        let mut free_ns = [0_u64; SESSIONS];
        for free in &mut free_ns {
            *free = next_ns(&mut draw, 0);
        }
        loop {
            let session = (0..SESSIONS).min_by_key(|&one| free_ns[one]).unwrap_or(0);
            let begins_ns = free_ns[session];
            let ends_ns = begins_ns + draw.exponential_ns(20e6);
            if ends_ns > 10 * SECOND_NS {
                break;
            }
            changes.extend([
                (begins_ns, SessionState::Begins),
                (ends_ns, SessionState::Idle),
            ]);
            free_ns[session] = next_ns(&mut draw, ends_ns);
        }
        schedule_log_odds([((0, 10 * SECOND_NS), changes)].into_iter(), SESSIONS)
    }

    #[test]
    fn arrivals_find_as_many_idle_sessions_as_there_are_over_time() {
        let mut last_ns = 0;
        let odds = odds(|draw, ends_ns| {
            last_ns += draw.exponential_ns(5e6);
            last_ns.max(ends_ns)
        });
        assert!(odds > BELIEVED_LN, "{odds}");
    }

    #[test]
    fn clients_that_pause_begin_more_often_while_more_are_idle() {
        let odds = odds(|draw, ends_ns| ends_ns + draw.exponential_ns(20e6));
        assert!(odds < 0.0, "{odds}");
    }

    #[test]
    fn what_was_not_seen_is_not_believed() {
        assert_eq!(schedule_log_odds(std::iter::empty(), 4), 0.0);
    }
}
