//! Clients' sessions: threads whose lifetimes do not overlap are joined into one session.

use tierwise_recording::ThreadClass;

use crate::constants::SESSION_LEAST_SHARE;
use crate::timeline::segments::{Segment, segments_of};
use crate::timeline::wait::WaitCause;
use crate::transactions::turns::{RawTurn, turns_of};
use crate::view::View;

pub(crate) struct RawSession<'a> {
    pub(crate) name: String,
    /// When its last thread ended.
    until_ns: u64,
    pub(crate) turns: Vec<RawTurn<'a>>,
}

pub(crate) fn raw_sessions<'a>(view: &View<'a>) -> Vec<RawSession<'a>> {
    let threads = view.threads(ThreadClass::Session);
    let mut threads: Vec<(u64, u64, u32)> = threads
        .filter(|&thread| !view.flushes.is_replica(thread))
        .filter_map(|thread| {
            let states = view.states(thread);
            Some((states.first()?.start_ns, states.last()?.end_ns, thread))
        })
        .collect();
    threads.sort_by_key(|&(from_ns, ..)| from_ns);
    let mut sessions: Vec<RawSession> = Vec::new();
    for (from_ns, until_ns, thread) in threads {
        let segments = segments_of(view, thread).into_iter();
        let turns = segments.flat_map(|(burst, segments)| turns_of(view, thread, burst, segments));
        let mut ended = sessions.iter_mut();
        match ended.find(|session| session.until_ns <= from_ns) {
            Some(session) => {
                session.turns.extend(turns);
                session.until_ns = until_ns;
            }
            None => sessions.push(RawSession {
                name: view.recording.threads[thread as usize].name.clone(),
                until_ns,
                turns: turns.collect(),
            }),
        }
    }
    drop_lookers_on(&mut sessions);
    sessions
}

/// Drops sessions that do next to nothing while others work: their time is their client's, not the work's.
fn drop_lookers_on(sessions: &mut Vec<RawSession<'_>>) {
    let busy: Vec<u64> = sessions.iter().map(busy_ns).collect();
    let mean_ns = busy.iter().sum::<u64>() as f64 / busy.len().max(1) as f64;
    let busiest_ns = busy.iter().copied().max().unwrap_or(0) as f64;
    let mut busy = busy.into_iter();
    sessions.retain(|session| {
        let commits = session.turns.iter().any(|turn| !turn.commits.is_empty());
        let least_ns = if commits { mean_ns } else { busiest_ns } * SESSION_LEAST_SHARE.get();
        busy.next().is_some_and(|ns| ns as f64 >= least_ns)
    });
}

/// Time of a session without its waits for its client, for a timer, or for what the recording does not explain: a
/// library's caller waits so for the threads that it started.
fn busy_ns(session: &RawSession<'_>) -> u64 {
    use WaitCause::{Client, Other, Timer};
    let segments = session.turns.iter().flat_map(|turn| &turn.segments);
    let busy =
        segments.filter(|segment| !matches!(segment.wait(), Some((Client | Timer | Other, _))));
    busy.map(Segment::time_ns).sum()
}
