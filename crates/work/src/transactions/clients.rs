//! What a client on the same machine did while its session waited for it, and on which thread.

use std::collections::BTreeMap;

use tierwise_recording::{State, StateKind, ThreadClass};

use crate::constants::OWN_CLIENT_SHARE;
use crate::rows::Rows;
use crate::timeline::wait::WaitCause;
use crate::transactions::turns::RawTurn;

/// The client thread that served a session; none if it was not recorded, or several did in turn.
pub(crate) fn thread_of(rows: &Rows<'_>, turns: &[RawTurn<'_>]) -> Option<u32> {
    let mut ended: BTreeMap<u32, u32> = BTreeMap::new();
    for segment in turns.iter().flat_map(|turn| &turn.segments) {
        if let Some((WaitCause::Client, state)) = segment.wait() {
            *ended.entry(state.waker).or_default() += 1;
        }
    }
    let all: u32 = ended.values().sum();
    let (thread, most) = ended.into_iter().max_by_key(|&(_, count)| count)?;
    let own = rows.class(thread) == Some(ThreadClass::Client)
        && f64::from(most) >= OWN_CLIENT_SHARE.get() * f64::from(all);
    own.then_some(thread)
}

/// The instants of the requests of each client's thread, which end sessions' waits, in order: one thread may serve
/// several sessions in turn.
pub(crate) struct Clients {
    requests: BTreeMap<u32, Vec<u64>>,
}

impl Clients {
    pub(crate) fn new(rows: &Rows<'_>) -> Self {
        let mut requests: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for session in rows.threads(ThreadClass::Session) {
            for state in rows.states(session) {
                if rows.class(state.waker) == Some(ThreadClass::Client) {
                    let sent = requests.entry(state.waker).or_default();
                    sent.push(state.end_ns);
                }
            }
        }
        let times = requests.values_mut();
        times.for_each(|times| times.sort_unstable());
        Self { requests }
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
    /// replay recomputes that queue. All processor time of the thread since its previous request belongs to this one,
    /// also what it ran while the session still worked: it sends, looks for replies, and wakes before its session
    /// waits.
    pub(crate) fn part(&self, rows: &Rows<'_>, wait: &State, own: Option<u32>) -> ClientTime {
        if rows.class(wait.waker) != Some(ThreadClass::Client) {
            return ClientTime {
                away_ns: wait.end_ns - wait.start_ns,
                ..ClientTime::default()
            };
        }
        let turned_ns = self.turned_to(wait.waker, wait.end_ns);
        let turned_ns = turned_ns.unwrap_or(wait.start_ns);
        let from_ns = turned_ns.clamp(wait.start_ns, wait.end_ns);
        let states = rows.states(wait.waker);
        let mut part = between(states, from_ns, wait.end_ns);
        part.cpu_ns = between(states, turned_ns, wait.end_ns).cpu_ns;
        part.away_ns += match own == Some(wait.waker) {
            true => between(states, wait.start_ns, from_ns).away_ns,
            false => from_ns - wait.start_ns,
        };
        part
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ClientTime {
    pub(crate) cpu_ns: u64,
    /// Neither on a core nor ready: thinks, or is elsewhere.
    pub(crate) away_ns: u64,
}

/// Activity of a client's thread between two instants.
fn between(states: &[State], from_ns: u64, to_ns: u64) -> ClientTime {
    let first = states.partition_point(|state| state.end_ns <= from_ns);
    let mut part = ClientTime::default();
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
    use super::*;
    use crate::test_states::state;

    #[test]
    fn processor_time_and_sleep_of_a_thread_are_told_apart() {
        let states = [
            state(1, (0, 30), StateKind::Cpu),
            state(1, (30, 40), StateKind::Runnable),
            state(1, (40, 90), StateKind::Blocked),
            state(1, (90, 100), StateKind::Cpu),
        ];
        let found = between(&states, 20_000, 95_000);
        let expected = ClientTime {
            cpu_ns: 15_000,
            away_ns: 50_000,
        };
        assert_eq!(found, expected);
    }
}
