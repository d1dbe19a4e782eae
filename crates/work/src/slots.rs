//! Clients' sessions: threads that never lived at the same time follow each other in one.

use tierwise_recording::ThreadClass;

use crate::cut::{RawTurn, cut};
use crate::flushes::LogFlushes;
use crate::pieces::{PieceKind, pieces_of};
use crate::view::View;
use crate::wait::Why;

/// A session that does less than this share of the mean of all is somebody looking on; one that commits nothing, less
/// than this share of the busiest.
pub(crate) const LEAST_SHARE: f64 = 0.02;

/// One session before it becomes steps.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) name: String,
    /// When its last thread ended.
    until_ns: u64,
    pub(crate) turns: Vec<RawTurn>,
}

/// All clients' sessions.
pub(crate) fn slots(view: &View<'_>, flushes: &LogFlushes) -> Vec<Slot> {
    let mut threads: Vec<u32> = view.threads(ThreadClass::Session).collect();
    threads.retain(|&thread| !view.states(thread).is_empty() && !flushes.is_members(thread));
    threads.sort_by_key(|&thread| view.states(thread)[0].start_ns);
    let mut slots: Vec<Slot> = Vec::new();
    for thread in threads {
        let states = view.states(thread);
        let (from_ns, to_ns) = (states[0].start_ns, states[states.len() - 1].end_ns);
        let turns = pieces_of(view, flushes, thread)
            .into_iter()
            .flat_map(|(burst, pieces)| cut(view, flushes, thread, burst, pieces));
        match slots.iter_mut().find(|slot| slot.until_ns <= from_ns) {
            Some(slot) => {
                slot.turns.extend(turns);
                slot.until_ns = to_ns;
            }
            None => slots.push(Slot {
                name: view.recording.threads[thread as usize].name.clone(),
                until_ns: to_ns,
                turns: turns.collect(),
            }),
        }
    }
    drop_lookers_on(&mut slots);
    slots
}

/// Leaves out sessions that do next to nothing while others work: what time they take is their client's, and would
/// be taken for that of the work.
fn drop_lookers_on(slots: &mut Vec<Slot>) {
    let busy: Vec<u64> = slots.iter().map(busy_ns).collect();
    let mean_ns = busy.iter().sum::<u64>() as f64 / busy.len().max(1) as f64;
    let busiest_ns = busy.iter().copied().max().unwrap_or(0) as f64;
    let mut busy = busy.into_iter();
    slots.retain(|slot| {
        let commits = slot.turns.iter().any(|turn| !turn.commits.is_empty());
        let least_ns = if commits { mean_ns } else { busiest_ns } * LEAST_SHARE;
        busy.next().is_some_and(|ns| ns as f64 >= least_ns)
    });
}

/// Time of a session that it did not wait for its client or a timer.
fn busy_ns(slot: &Slot) -> u64 {
    let pieces = slot.turns.iter().flat_map(|turn| &turn.pieces);
    let busy = pieces.filter(|piece| {
        !matches!(
            piece.kind,
            PieceKind::Wait {
                why: Why::Client | Why::Timer,
                ..
            }
        )
    });
    busy.map(|piece| piece.time_ns()).sum()
}
