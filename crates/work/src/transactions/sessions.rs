//! Clients' sessions: threads whose lifetimes do not overlap are joined into one session.

use tierwise_recording::ThreadClass;

use crate::constants::SESSION_LEAST_SHARE;
use crate::index::rows::Rows;
use crate::log::flushes::LogFlushes;
use crate::timeline::segments::{SegmentKind, segments_of};
use crate::timeline::wait::WaitCause;
use crate::transactions::turns::{RawTurn, turns_of};

/// One session before it becomes steps.
#[derive(Clone, Debug)]
pub(crate) struct RawSession {
    pub(crate) name: String,
    /// When its last thread ended.
    until_ns: u64,
    pub(crate) turns: Vec<RawTurn>,
}

/// All clients' sessions.
pub(crate) fn raw_sessions(rows: &Rows<'_>, flushes: &LogFlushes) -> Vec<RawSession> {
    let mut threads: Vec<u32> = rows.threads(ThreadClass::Session).collect();
    threads.retain(|&thread| !rows.states(thread).is_empty() && !flushes.is_replica(thread));
    threads.sort_by_key(|&thread| rows.states(thread)[0].start_ns);
    let mut raw_sessions: Vec<RawSession> = Vec::new();
    for thread in threads {
        let states = rows.states(thread);
        let (from_ns, to_ns) = (states[0].start_ns, states[states.len() - 1].end_ns);
        let turns = segments_of(rows, flushes, thread)
            .into_iter()
            .flat_map(|(burst, segments)| turns_of(rows, flushes, thread, burst, segments));
        match raw_sessions
            .iter_mut()
            .find(|session| session.until_ns <= from_ns)
        {
            Some(session) => {
                session.turns.extend(turns);
                session.until_ns = to_ns;
            }
            None => raw_sessions.push(RawSession {
                name: rows.recording.threads[thread as usize].name.clone(),
                until_ns: to_ns,
                turns: turns.collect(),
            }),
        }
    }
    drop_lookers_on(&mut raw_sessions);
    raw_sessions
}

/// Drops sessions that do next to nothing while others work: their time is their client's, not the work's.
fn drop_lookers_on(raw_sessions: &mut Vec<RawSession>) {
    let busy: Vec<u64> = raw_sessions.iter().map(busy_ns).collect();
    let mean_ns = busy.iter().sum::<u64>() as f64 / busy.len().max(1) as f64;
    let busiest_ns = busy.iter().copied().max().unwrap_or(0) as f64;
    let mut busy = busy.into_iter();
    raw_sessions.retain(|session| {
        let commits = session.turns.iter().any(|turn| !turn.commits.is_empty());
        let least_ns = if commits { mean_ns } else { busiest_ns } * SESSION_LEAST_SHARE.get();
        busy.next().is_some_and(|ns| ns as f64 >= least_ns)
    });
}

/// Time of a session without its waits for its client, for a timer, or for what the recording does not explain: a
/// library's caller waits so for the threads that it started.
fn busy_ns(session: &RawSession) -> u64 {
    let segments = session.turns.iter().flat_map(|turn| &turn.segments);
    let busy = segments.filter(|segment| {
        !matches!(
            segment.kind,
            SegmentKind::Wait {
                cause: WaitCause::Client | WaitCause::Timer | WaitCause::Other,
                ..
            }
        )
    });
    busy.map(|segment| segment.time_ns()).sum()
}
