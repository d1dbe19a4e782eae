//! Whether transactions arrive by a schedule of their own, or each client begins its next one after a pause.
//!
//! Poisson arrivals see time averages (Wolff, *Operations Research* 30(2), 1982): if transactions arrive whether or
//! not earlier ones are done, the number of idle sessions that one finds is distributed as it is over time. If each
//! idle session begins its next one after a pause, transactions begin more often while more sessions are idle. The
//! likelihoods of both are compared over all begins.
//!
//! Assumption: pauses are random. Of pauses of one length, sessions that one flush released end together, which looks
//! like a schedule; so pauses that hardly vary are no arrivals.

use crate::rows::Rows;
use crate::timeline::WaitCause;
use crate::transactions::turns::RawTurn;

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
enum State {
    Idle,
    /// Within a transaction that began then.
    Begins,
    /// Within one that had begun before the burst.
    Busy,
}

/// When a session's state changed, and to which.
type Change = (u64, State);

/// Whether transactions arrive by a schedule.
pub(crate) fn arrive(rows: &Rows<'_>, sessions: &[Vec<RawTurn<'_>>]) -> bool {
    let mut bursts = vec![Vec::new(); rows.recording.about.bursts.len()];
    let mut pauses = Vec::new();
    for turns in sessions {
        add_session(&mut bursts, &mut pauses, turns);
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
    odds_ln(spans.zip(bursts), sessions.len()) > BELIEVED_LN
}

/// Adds when a session became idle and busy, and its pauses. It is idle at first.
fn add_session(bursts: &mut [Vec<Change>], pauses_ns: &mut Vec<f64>, turns: &[RawTurn<'_>]) {
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
            let to = if first { State::Busy } else { State::Begins };
            changes.push((time_ns, to));
            let paused = since_ns.take();
            pauses_ns.extend(paused.map(|since_ns| time_ns.saturating_sub(since_ns) as f64));
            idle = false;
        }
        if turn.ends && turn.reply_ns.is_some() {
            let time_ns = turn.replied_ns();
            changes.push((time_ns, State::Idle));
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
fn odds_ln(bursts: impl Iterator<Item = ((u64, u64), Vec<Change>)>, sessions: usize) -> f64 {
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
                State::Idle => idle = (idle + 1.0).min(sessions as f64),
                to => {
                    if to == State::Begins {
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
            changes.extend([(begins_ns, State::Begins), (ends_ns, State::Idle)]);
            free_ns[session] = next_ns(&mut draw, ends_ns);
        }
        odds_ln([((0, 10 * SECOND_NS), changes)].into_iter(), SESSIONS)
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
        assert_eq!(odds_ln(std::iter::empty(), 4), 0.0);
    }
}
