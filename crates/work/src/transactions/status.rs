//! Transaction status in the replies of a session.

use tierwise_recording::TransactionStatus::{Failed, Idle, InTransaction, Unknown};

use crate::transactions::explicit_transactions::{Boundaries, put_inside};
use crate::transactions::turns::RawTurn;

/// Whether a turn leaves its session in a transaction; none if its reply does not say, or if it ran no statement.
pub(crate) fn goes_on(turn: &RawTurn) -> Option<bool> {
    match turn.status.filter(|_| !turn.ping)? {
        Idle => Some(false),
        InTransaction | Failed => Some(true),
        Unknown => None,
    }
}

/// Changes the shapes of turns that leave their session in a transaction; none if no reply states the status.
/// A reply without a status is assumed to leave it unchanged.
pub(crate) fn mark_inside(sessions: &mut [Vec<RawTurn>]) -> Option<Boundaries> {
    let mut known = false;
    for turns in sessions {
        let mut place = None;
        let mut inside = false;
        for turn in turns {
            let here = Some((turn.burst, turn.thread));
            inside &= place == here;
            place = here;
            if let Some(goes_on) = goes_on(turn) {
                inside = goes_on;
                known = true;
            }
            if inside {
                put_inside(turn);
            }
        }
    }
    known.then_some(Boundaries::Status)
}
