//! Clients' sessions: threads whose lifetimes do not overlap are joined into one session. Work that is done once may
//! begin and end within them: a server's session may have been idle before and after its job.

use std::collections::{BTreeMap, BTreeSet};

use tierwise_recording::{State, StateKind, ThreadClass};

use crate::constants::{CHANCE_SHARE, EXCEPTIONS_SHARE};
use crate::recording_rows::RecordingRows;
use crate::recording_view::RecordingView;
use crate::timeline::{ThreadSegment, WaitCause, thread_segments};
use crate::transactions::turns::{RawTurn, cut_into_turns};

/// Work with at least this many transactions counts as steady, else as done once.
pub const STEADY_TRANSACTIONS: usize = 40;

/// A longer wait of all sessions for their clients lies between two jobs, rather than within one. Chosen: people type.
const BETWEEN_JOBS_NS: u64 = 1_000_000_000;
/// Work before or after such a wait that takes a smaller share of the sessions' time is none of the job. Chosen.
const LEAST_JOB_SHARE: f64 = 0.02;

pub(crate) struct RawSession<'a> {
    pub(crate) name: String,
    /// When its last thread ended.
    until_ns: u64,
    pub(crate) turns: Vec<RawTurn<'a>>,
}

impl RawSession<'_> {
    fn commits(&self) -> bool {
        self.turns.iter().any(|turn| !turn.commits.is_empty())
    }
}

pub(crate) fn raw_sessions<'a>(view: &RecordingView<'a>) -> Vec<RawSession<'a>> {
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
        let segments = thread_segments(view, thread).into_iter();
        let turns =
            segments.flat_map(|(burst, segments)| cut_into_turns(view, thread, burst, segments));
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
    drop_idle_sessions(&mut sessions);
    sessions
}

/// Drops sessions that do next to nothing while others work: their time is their client's, not the work's.
fn drop_idle_sessions(sessions: &mut Vec<RawSession<'_>>) {
    let busy: Vec<u64> = sessions.iter().map(session_busy_ns).collect();
    let mean_ns = busy.iter().sum::<u64>() as f64 / busy.len().max(1) as f64;
    let busiest_ns = busy.iter().copied().max().unwrap_or(0) as f64;
    let mut busy = busy.into_iter();
    sessions.retain(|session| {
        let least_ns = if session.commits() {
            mean_ns
        } else {
            busiest_ns
        } * CHANCE_SHARE.get();
        busy.next().is_some_and(|ns| ns as f64 >= least_ns)
    });
}

/// Time of a session without its waits for its client, for a timer, or for what the recording does not explain: a
/// library's caller waits so for the threads that it started. Without commits, also without waits for other threads: a
/// library's timer thread sleeps until the program ends it.
fn session_busy_ns(session: &RawSession<'_>) -> u64 {
    use WaitCause::{Client, Other, Thread, Timer};
    let commits = session.commits();
    let idle = |segment: &ThreadSegment<'_>| match segment.wait() {
        Some((Client | Timer | Other, _)) => true,
        Some((Thread, _)) => !commits,
        _ => false,
    };
    let segments = session.turns.iter().flat_map(|turn| &turn.segments);
    let busy = segments.filter(|segment| !idle(segment));
    busy.map(ThreadSegment::time_ns).sum()
}

struct BusyStretch {
    from_ns: u64,
    to_ns: u64,
    busy_ns: u64,
}

/// First and last instant at which a session did more than wait for its client or its next session, without small work
/// far from the rest; none if none did.
pub(crate) fn active_span(
    rows: &RecordingRows<'_>,
    sessions: &[Vec<RawTurn<'_>>],
) -> Option<(u64, u64)> {
    let stretches = busy_stretches(rows, sessions);
    let busy_ns: u64 = stretches.iter().map(|stretch| stretch.busy_ns).sum();
    let least_ns = busy_ns as f64 * LEAST_JOB_SHARE;
    let matters = |stretch: &BusyStretch| stretch.busy_ns as f64 >= least_ns;
    let first = stretches.iter().position(matters)?;
    let last = stretches.iter().rposition(matters)?;
    Some((stretches[first].from_ns, stretches[last].to_ns))
}

fn busy_stretches(rows: &RecordingRows<'_>, sessions: &[Vec<RawTurn<'_>>]) -> Vec<BusyStretch> {
    let segments = sessions.iter().flatten().flat_map(|turn| &turn.segments);
    let mut active: Vec<&ThreadSegment> = segments
        .filter(|segment| !is_idle_segment(rows, segment))
        .collect();
    active.sort_by_key(|segment| segment.start_ns);
    let mut stretches: Vec<BusyStretch> = Vec::new();
    for segment in active {
        let (from_ns, to_ns) = (segment.start_ns, segment.end_ns);
        match stretches.last_mut() {
            Some(last) if from_ns <= last.to_ns.saturating_add(BETWEEN_JOBS_NS) => {
                last.to_ns = last.to_ns.max(to_ns);
                last.busy_ns += segment.time_ns();
            }
            _ => stretches.push(BusyStretch {
                from_ns,
                to_ns,
                busy_ns: segment.time_ns(),
            }),
        }
    }
    stretches
}

/// Leaves out what lies before and after that span.
pub(crate) fn trim_to_span(sessions: &mut [Vec<RawTurn<'_>>], (first_ns, last_ns): (u64, u64)) {
    for turns in sessions {
        for turn in turns.iter_mut() {
            // A call is a segment without a length: one at the edge of the span belongs to it.
            let early = |segment: &&ThreadSegment| {
                segment.end_ns <= first_ns && segment.start_ns < first_ns
            };
            let late =
                |segment: &&ThreadSegment| segment.start_ns >= last_ns && segment.end_ns > last_ns;
            let before = turn.segments.iter().take_while(early).count();
            let rest = turn.segments[before..].iter().rev();
            let after = rest.take_while(late).count();
            turn.segments.truncate(turn.segments.len() - after);
            turn.segments.drain(..before);
            turn.commits
                .retain(|commit| commit.segment as usize >= before);
            for commit in &mut turn.commits {
                commit.segment -= before as u32;
            }
        }
        turns.retain(|turn| !turn.segments.is_empty());
    }
}

/// Whether a segment may be idle time: a wait for the client, for nothing that the recording explains, or for the first
/// thread of the server, which gives connections to idle threads.
fn is_idle_segment(rows: &RecordingRows<'_>, segment: &ThreadSegment<'_>) -> bool {
    match segment.wait() {
        Some((WaitCause::Client | WaitCause::Other, _)) => true,
        Some((WaitCause::Thread, state)) => {
            let threads = &rows.recording.threads;
            let waker = threads.get(state.waker as usize);
            let pid = threads[state.thread as usize].pid;
            waker.is_some_and(|waker| waker.tid == waker.pid && waker.pid == pid)
        }
        _ => false,
    }
}

// What a client on the same machine did while its session waited for it, and on which thread.

/// The client thread that served a session; none if it was not recorded, or several did in turn.
pub(crate) fn client_thread_of(rows: &RecordingRows<'_>, turns: &[RawTurn<'_>]) -> Option<u32> {
    let mut ended: BTreeMap<u32, u32> = BTreeMap::new();
    for segment in turns.iter().flat_map(|turn| &turn.segments) {
        if let Some((WaitCause::Client, state)) = segment.wait() {
            *ended.entry(state.waker).or_default() += 1;
        }
    }
    let all: u32 = ended.values().sum();
    let (thread, most) = ended.into_iter().max_by_key(|&(_, count)| count)?;
    let own = rows.class(thread) == Some(ThreadClass::Client)
        && f64::from(most) >= (1.0 - EXCEPTIONS_SHARE.get()) * f64::from(all);
    own.then_some(thread)
}

/// The instants of the requests of each client's thread, which end sessions' waits, in order: one thread may serve
/// several sessions in turn.
pub(crate) struct ClientThreadRequests {
    requests: BTreeMap<u32, Vec<u64>>,
    /// Sessions of each client's thread.
    sessions: BTreeMap<u32, u32>,
    /// Until when a client's time is accounted for, beside its requests that end waits.
    counted_ns: BTreeMap<u32, u64>,
}

impl ClientThreadRequests {
    pub(crate) fn new(rows: &RecordingRows<'_>) -> Self {
        let mut requests: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        let mut sessions: BTreeMap<u32, u32> = BTreeMap::new();
        for session in rows.threads(ThreadClass::Session) {
            let mut own = BTreeSet::new();
            for state in rows.states(session) {
                if rows.class(state.waker) == Some(ThreadClass::Client) {
                    let sent = requests.entry(state.waker).or_default();
                    sent.push(state.end_ns);
                    own.insert(state.waker);
                }
            }
            for client in own {
                *sessions.entry(client).or_default() += 1;
            }
        }
        let times = requests.values_mut();
        times.for_each(|times| times.sort_unstable());
        Self {
            requests,
            sessions,
            counted_ns: BTreeMap::new(),
        }
    }

    /// What a session's own client ran while the session was ready for a core. A client that is woken on the session's
    /// core runs before it, and has sent its next request when the session continues: there is no wait to see.
    pub(crate) fn beside(
        &mut self,
        rows: &RecordingRows<'_>,
        client: Option<u32>,
        (from_ns, to_ns): (u64, u64),
    ) -> Option<ClientThreadTime> {
        let client = client.filter(|client| self.sessions.get(client) == Some(&1))?;
        let cpu_ns = client_time_between(rows.states(client), from_ns, to_ns).cpu_ns;
        if cpu_ns == 0 {
            return None;
        }
        self.counted_ns.insert(client, to_ns);
        Some(ClientThreadTime { cpu_ns, away_ns: 0 })
    }

    /// When a client's thread began to serve the session that it woke at an instant: after its previous
    /// request, if there was one.
    fn turned_to(&self, client: u32, woke_ns: u64) -> Option<u64> {
        let requests = self.requests.get(&client)?;
        let before = requests.partition_point(|&time_ns| time_ns < woke_ns);
        requests[..before].last().copied()
    }

    /// Splits a session's wait for its client; an unrecorded client counts as away. A client whose thread slept
    /// thinks, whichever session the thread served next. While it served others, on a core or ready for one, it
    /// was away from this session, too. Exception: if it is `own`, the thread that the session always waits for,
    /// replay recomputes that queue, so what the session waited for its busy thread is left out. A thread that sleeps
    /// has no session to serve: the session thought until its thread last slept. All processor time of the thread
    /// since its previous request belongs to this one, also what it ran while the session still worked: it sends,
    /// looks for replies, and wakes before its session waits.
    pub(crate) fn part(
        &self,
        rows: &RecordingRows<'_>,
        wait: &State,
        own: Option<u32>,
    ) -> ClientThreadTime {
        if rows.class(wait.waker) != Some(ThreadClass::Client) {
            return ClientThreadTime {
                away_ns: wait.end_ns - wait.start_ns,
                ..ClientThreadTime::default()
            };
        }
        let turned_ns = self.turned_to(wait.waker, wait.end_ns);
        let counted_ns = self.counted_ns.get(&wait.waker).copied();
        let turned_ns = turned_ns
            .max(counted_ns)
            .unwrap_or(wait.start_ns)
            .min(wait.end_ns);
        let from_ns = turned_ns.clamp(wait.start_ns, wait.end_ns);
        let states = rows.states(wait.waker);
        let mut part = client_time_between(states, from_ns, wait.end_ns);
        part.cpu_ns = client_time_between(states, turned_ns, wait.end_ns).cpu_ns;
        let queued = own == Some(wait.waker) && part.away_ns == 0;
        let away_until_ns = match queued {
            true => client_slept_until(states, wait.start_ns, from_ns),
            false => from_ns,
        };
        part.away_ns += away_until_ns - wait.start_ns;
        part
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ClientThreadTime {
    pub(crate) cpu_ns: u64,
    /// Neither on a core nor ready: thinks, or is elsewhere.
    pub(crate) away_ns: u64,
}

/// When a client's thread last slept between two instants; at first, if it did not.
fn client_slept_until(states: &[State], from_ns: u64, to_ns: u64) -> u64 {
    let after = states.partition_point(|state| state.start_ns < to_ns);
    let before = states[..after].iter().rev();
    let mut sleeps = before.filter(|state| state.kind == StateKind::Blocked);
    sleeps
        .next()
        .map_or(from_ns, |state| state.end_ns.clamp(from_ns, to_ns))
}

/// Activity of a client's thread between two instants.
fn client_time_between(states: &[State], from_ns: u64, to_ns: u64) -> ClientThreadTime {
    let first = states.partition_point(|state| state.end_ns <= from_ns);
    let mut part = ClientThreadTime::default();
    let mut seen_ns = 0;
    let states = states[first..].iter();
    for state in states.take_while(|state| state.start_ns < to_ns) {
        let inside_ns = state.end_ns.min(to_ns) - state.start_ns.max(from_ns);
        seen_ns += inside_ns;
        match state.kind {
            StateKind::Cpu => part.cpu_ns += inside_ns,
            StateKind::Blocked => part.away_ns += inside_ns,
            StateKind::Runnable => {}
        }
    }
    part.away_ns += (to_ns - from_ns).saturating_sub(seen_ns);
    part
}

#[cfg(test)]
mod tests {
    use tierwise_recording::{Recording, State, StateKind};

    use super::*;
    use crate::recording_rows::test_state;
    use crate::timeline::ThreadSegmentKind;
    use crate::transactions::turns::VisibleCommit;

    fn span(sessions: &[Vec<RawTurn<'_>>]) -> Option<(u64, u64)> {
        active_span(&RecordingRows::new(&Recording::default()), sessions)
    }

    const STATE: State = test_state(0, (0, 0), StateKind::Blocked);

    fn segment(start_ns: u64, end_ns: u64, cause: Option<WaitCause>) -> ThreadSegment<'static> {
        let kind = match cause {
            Some(cause) => ThreadSegmentKind::Wait {
                cause,
                state: &STATE,
            },
            None => ThreadSegmentKind::Cpu { waited: false },
        };
        ThreadSegment {
            start_ns,
            end_ns,
            kind,
        }
    }

    #[test]
    fn idle_time_around_a_job_is_left_out() {
        let turn = |segments: Vec<ThreadSegment<'static>>, commits| RawTurn {
            segments,
            commits,
            ..RawTurn::default()
        };
        let client = Some(WaitCause::Client);
        let commit = VisibleCommit {
            segment: 2,
            start_ns: 14,
            end_ns: 16,
        };
        let mut sessions = vec![vec![
            turn(vec![segment(0, 8, client)], vec![]),
            turn(
                vec![
                    segment(8, 10, client),
                    segment(10, 14, None),
                    segment(14, 16, Some(WaitCause::LogDevice)),
                    segment(16, 90, client),
                ],
                vec![commit],
            ),
        ]];
        let found = span(&sessions).unwrap();
        assert_eq!(found, (10, 16));
        trim_to_span(&mut sessions, found);
        assert_eq!(sessions[0].len(), 1);
        let left = &sessions[0][0];
        assert_eq!((left.segments.len(), left.commits[0].segment), (2, 1));
        assert_eq!(span(&[vec![]]), None);
    }

    #[test]
    fn a_timer_thread_of_a_library_is_no_session() {
        let session = |name: &str, segments, commits| RawSession {
            name: name.into(),
            until_ns: 1000,
            turns: vec![RawTurn {
                segments,
                commits,
                ..RawTurn::default()
            }],
        };
        let commit = VisibleCommit {
            segment: 0,
            start_ns: 0,
            end_ns: 1000,
        };
        let log = segment(0, 1000, Some(WaitCause::LogDevice));
        let until_the_end = segment(700, 1000, Some(WaitCause::Thread));
        let mut sessions = vec![
            session("commits", vec![log], vec![commit]),
            session("timer", vec![segment(0, 1, None), until_the_end], vec![]),
            session("reads", vec![segment(0, 100, None)], vec![]),
        ];
        drop_idle_sessions(&mut sessions);
        let left: Vec<&str> = sessions
            .iter()
            .map(|session| session.name.as_str())
            .collect();
        assert_eq!(left, ["commits", "reads"]);
    }

    #[test]
    fn small_work_long_before_a_job_is_none_of_it() {
        let turn = |from_ns, to_ns| RawTurn {
            segments: vec![segment(from_ns, to_ns, None)],
            ..RawTurn::default()
        };
        const S: u64 = 1_000_000_000;
        let mut sessions = vec![vec![
            turn(0, 1000),
            turn(3 * S, 5 * S),
            turn(9 * S, 9 * S + 5),
        ]];
        let found = span(&sessions).unwrap();
        assert_eq!(found, (3 * S, 5 * S));
        trim_to_span(&mut sessions, found);
        assert_eq!(sessions[0].len(), 1);
        let near = [vec![
            turn(0, 1000),
            turn(S / 2, 2 * S),
            turn(2 * S, 2 * S + 5),
        ]];
        assert_eq!(span(&near), Some((0, 2 * S + 5)));
    }

    #[test]
    fn processor_time_and_sleep_of_a_thread_are_told_apart() {
        let states = [
            test_state(1, (0, 30), StateKind::Cpu),
            test_state(1, (30, 40), StateKind::Runnable),
            test_state(1, (40, 90), StateKind::Blocked),
            test_state(1, (90, 100), StateKind::Cpu),
        ];
        let found = client_time_between(&states, 20_000, 95_000);
        let expected = ClientThreadTime {
            cpu_ns: 15_000,
            away_ns: 50_000,
        };
        assert_eq!(found, expected);
    }
}
