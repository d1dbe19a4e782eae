//! What a client on the same machine did while its session waited for it, and on which thread.

use std::collections::BTreeMap;

use tierwise_recording::{State, StateKind, ThreadClass};

use crate::constants::OWN_CLIENT_SHARE;
use crate::index::view::View;
use crate::timeline::segments::SegmentKind;
use crate::timeline::wait::WaitCause;
use crate::transactions::turns::RawTurn;

/// The client thread that served a session; none if it was not recorded, or several did in turn.
pub(crate) fn thread_of(view: &View<'_>, turns: &[RawTurn]) -> Option<u32> {
    let mut ended: BTreeMap<u32, u32> = BTreeMap::new();
    for turn in turns {
        for segment in &turn.segments {
            if let SegmentKind::Wait {
                cause: WaitCause::Client,
                state,
            } = segment.kind
            {
                let waker = view.states(turn.thread)[state as usize].waker;
                *ended.entry(waker).or_default() += 1;
            }
        }
    }
    let all: u32 = ended.values().sum();
    let (thread, most) = ended.into_iter().max_by_key(|&(_, count)| count)?;
    let own = view.class(thread) == Some(ThreadClass::Client)
        && f64::from(most) >= OWN_CLIENT_SHARE.get() * f64::from(all);
    own.then_some(thread)
}

/// A request of a client's thread: it ended a session's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    time_ns: u64,
    session: u32,
}

/// The requests of each client's thread, in order: one thread may serve several sessions in turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clients {
    requests: BTreeMap<u32, Vec<Request>>,
}

impl Clients {
    pub(crate) fn new(view: &View<'_>) -> Self {
        let mut requests: BTreeMap<u32, Vec<Request>> = BTreeMap::new();
        for session in view.threads(ThreadClass::Session) {
            for state in view.states(session) {
                if view.class(state.waker) == Some(ThreadClass::Client) {
                    let sent = requests.entry(state.waker).or_default();
                    sent.push(Request {
                        time_ns: state.end_ns,
                        session,
                    });
                }
            }
        }
        requests
            .values_mut()
            .for_each(|times| times.sort_unstable());
        Self { requests }
    }

    /// When a client's thread began to serve the session that it woke at an instant: after its previous
    /// request.
    fn turned_to(&self, client: u32, woke_ns: u64) -> u64 {
        let Some(requests) = self.requests.get(&client) else {
            return 0;
        };
        let before = requests.partition_point(|request| request.time_ns < woke_ns);
        requests[..before]
            .last()
            .map_or(0, |request| request.time_ns)
    }

    /// Until when a client's thread held up the session that it woke at a wait's end. Its later work for
    /// another session belongs to that session's turn.
    fn held_until(&self, view: &View<'_>, wait: &State) -> u64 {
        let next = self.next_request(wait);
        if next.is_some_and(|next| next.session != wait.thread) {
            return wait.end_ns;
        }
        held_until(wait, view.states(wait.thread), view.states(wait.waker))
    }

    /// The client thread's next request after the one that ended a wait.
    fn next_request(&self, wait: &State) -> Option<&Request> {
        let requests = self.requests.get(&wait.waker)?;
        let next = requests.partition_point(|request| request.time_ns <= wait.end_ns);
        requests.get(next)
    }

    /// Splits a session's wait for its client; an unrecorded client counts as away. A client whose thread slept
    /// thinks, whichever session the thread served next. While it served others, on a core or ready for one, it
    /// was away from this session, too. Exception: if it is `own`, the thread that the session always waits for,
    /// replay recomputes that queue.
    pub(crate) fn part(&self, view: &View<'_>, wait: &State, own: Option<u32>) -> ClientTime {
        if view.class(wait.waker) != Some(ThreadClass::Client) {
            return ClientTime {
                away_ns: wait.end_ns - wait.start_ns,
                ..ClientTime::default()
            };
        }
        let from_ns = self
            .turned_to(wait.waker, wait.end_ns)
            .clamp(wait.start_ns, wait.end_ns);
        let states = view.states(wait.waker);
        let held_until_ns = self.held_until(view, wait);
        let mut part = between(states, from_ns, held_until_ns);
        part.away_ns += match own == Some(wait.waker) {
            true => between(states, wait.start_ns, from_ns).away_ns,
            false => from_ns - wait.start_ns,
        };
        part
    }
}

/// A client's part of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ClientTime {
    /// On a core.
    pub(crate) cpu_ns: u64,
    /// Neither on a core nor ready: thinks, or is elsewhere.
    pub(crate) away_ns: u64,
}

/// A client wakes its session in the middle of a call. If they share a core, the client continues first:
/// until it leaves the core, or the session gets it.
fn held_until(wait: &State, session: &[State], client: &[State]) -> u64 {
    let woken = session.partition_point(|state| state.start_ns < wait.end_ns);
    let runs = session[woken..]
        .iter()
        .find(|state| state.kind == StateKind::Cpu);
    let at = client.partition_point(|state| state.end_ns <= wait.end_ns);
    let (Some(runs), Some(client)) = (runs, client.get(at)) else {
        return wait.end_ns;
    };
    let goes_on = client.kind == StateKind::Cpu && client.start_ns <= wait.end_ns;
    if goes_on && client.cpu == runs.cpu {
        client.end_ns.min(runs.start_ns).max(wait.end_ns)
    } else {
        wait.end_ns
    }
}

/// Activity of a client's thread between two instants.
fn between(states: &[State], from_ns: u64, to_ns: u64) -> ClientTime {
    let first = states.partition_point(|state| state.end_ns <= from_ns);
    let mut part = ClientTime::default();
    let mut seen_ns = 0;
    for state in states[first..]
        .iter()
        .take_while(|state| state.start_ns < to_ns)
    {
        let inside_ns = state.end_ns.min(to_ns) - state.start_ns.max(from_ns);
        seen_ns += inside_ns;
        match state.kind {
            StateKind::Cpu => {
                part.cpu_ns += inside_ns;
            }
            StateKind::Blocked => part.away_ns += inside_ns,
            StateKind::Runnable => {}
        }
    }
    part.away_ns += (to_ns - from_ns).saturating_sub(seen_ns);
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_goes_on_where_its_session_is_to_run_holds_it_up() {
        let state = |(start_ns, end_ns), kind, cpu| State {
            thread: 0,
            start_ns,
            end_ns,
            kind,
            cpu,
            waker: 1,
            call: tierwise_recording::NONE,
        };
        let wait = state((0, 100), StateKind::Blocked, 0);
        let session = [
            wait,
            state((100, 112), StateKind::Runnable, 0),
            state((112, 200), StateKind::Cpu, 0),
        ];
        let client = |cpu| {
            [
                state((60, 110), StateKind::Cpu, cpu),
                state((110, 300), StateKind::Blocked, cpu),
            ]
        };
        assert_eq!(held_until(&wait, &session, &client(0)), 110);
        assert_eq!(held_until(&wait, &session, &client(1)), 100);
        assert_eq!(held_until(&wait, &session, &[]), 100);
    }
}
