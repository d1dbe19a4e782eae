//! Processor time of the file system's journal thread in a journal commit, between the waits for its device.
//!
//! Source: `jbd2_journal_commit_transaction` (fs/jbd2/commit.c). An fsync that needs a journal commit wakes
//! the journal's thread and waits. That thread writes the journal's blocks and waits, sends the commit record
//! and waits, and wakes the caller. So a core is started for it three times, and once more for the caller.
//! Recordings do not follow that thread, but the block requests show when it had run.

use tierwise_recording::{Block, BlockOp, Call, State, StateKind};

use crate::constants::JOURNAL_MOST_FACTOR;
use crate::index::calls::makes_durable;
use crate::index::view::View;
use crate::statistics::median;
use crate::storage::sync_scripts;
use crate::JournalRules;

/// Least number of commits for an estimate.
const ENOUGH: usize = 10;

/// Times of journal commits, and the running time of the journal's thread in all of them.
pub(crate) fn journal(view: &View<'_>) -> (JournalRules, f64) {
    let mut last_ns = 0;
    let calls = view.recording.calls.iter();
    let mut syncs: Vec<&Call> = calls
        .filter(|call| makes_durable(call) && !call.failed)
        .collect();
    syncs.sort_unstable_by_key(|call| call.start_ns);
    let found: Vec<[u64; 4]> = syncs
        .into_iter()
        .filter_map(|call| gaps(view, call, &mut last_ns))
        .collect();
    if found.len() < ENOUGH {
        return (JournalRules::USUAL, 0.0);
    }
    let parts: [f64; 4] =
        std::array::from_fn(|part| usual(found.iter().map(|gaps| gaps[part]).collect()));
    let rules = JournalRules {
        begins_ns: parts[0] as u32,
        goes_on_ns: parts[1] as u32,
        ends_ns: parts[2] as u32,
        relays_ns: parts[3] as u32,
    };
    let ran_ns: f64 = parts[..3].iter().sum();
    (rules, ran_ns * found.len() as f64)
}

/// Times in the commit that a call requested, if the call requested it alone: until the journal's thread had
/// begun, had continued, and had ended, and between its record and the flush after it. `last_ns` is when the
/// thread ran last.
fn gaps(view: &View<'_>, call: &Call, last_ns: &mut u64) -> Option<[u64; 4]> {
    let device = view.device_of(call.file);
    let within = view.blocks(call.start_ns, call.end_ns).iter();
    let (mut writes, mut flushes): (Vec<&Block>, Vec<&Block>) = within
        .filter(|block| block.device == device && block.completed_ns <= call.end_ns)
        .filter(|block| match block.op {
            BlockOp::Flush => true,
            op => op == BlockOp::Write && sync_scripts::is_journals(view, block),
        })
        .partition(|block| block.op != BlockOp::Flush);
    let record = writes.pop()?;
    let first_ns = writes.first()?.issued_ns;
    flushes.retain(|flush| flush.issued_ns > first_ns);
    let [before, after] = flushes[..] else {
        return None;
    };
    let written_ns = writes.iter().map(|block| block.completed_ns).max()?;
    let in_turn = written_ns <= before.issued_ns
        && before.completed_ns <= record.issued_ns
        && record.completed_ns <= after.issued_ns;
    let asked = blocked(view, call.thread, first_ns)?;
    let before_ns = std::mem::replace(last_ns, asked.end_ns);
    if !in_turn || asked.end_ns < after.completed_ns || asked.start_ns < before_ns {
        return None;
    }
    let begun_ns = asked.start_ns - settling_ns(view, call, asked.start_ns);
    Some([
        first_ns - begun_ns,
        before.issued_ns - written_ns,
        asked.end_ns - after.completed_ns,
        after.issued_ns - record.completed_ns,
    ])
}

/// Extra wait of a sync's caller between its data and its wait for the journal. When their data is written, a
/// kernel thread converts unwritten extents to written ones (`ext4_end_io_rsv_work`, fs/ext4/page-io.c).
fn settling_ns(view: &View<'_>, call: &Call, until_ns: u64) -> u64 {
    let data_ns = data_ns(view, call, until_ns);
    let states = view.states(call.thread);
    let first = states.partition_point(|state| state.start_ns < call.start_ns);
    let within = states[first..]
        .iter()
        .take_while(|state| state.end_ns <= until_ns)
        .filter(|state| state.kind != StateKind::Cpu);
    // The first waits are for the data, one for each part of it.
    let for_data = |state: &&State| state.start_ns < data_ns;
    let last = within.clone().take_while(for_data).last();
    let woken = |state: &&State| last.is_some_and(|last| state.start_ns == last.end_ns);
    let again = within.skip_while(for_data).skip_while(woken);
    again.map(|state| state.end_ns - state.start_ns).sum()
}

/// When the last of a call's data was written before an instant.
fn data_ns(view: &View<'_>, call: &Call, until_ns: u64) -> u64 {
    let device = view.device_of(call.file);
    let within = view.blocks(call.start_ns, until_ns).iter();
    let data = within.filter(|block| {
        let writes = block.op == BlockOp::Write && !sync_scripts::is_journals(view, block);
        block.device == device && writes && block.completed_ns <= until_ns
    });
    let last = data.map(|block| block.completed_ns).max();
    last.unwrap_or(until_ns)
}

/// The wait of a thread at an instant, if it waits.
fn blocked<'a>(view: &View<'a>, thread: u32, time_ns: u64) -> Option<&'a State> {
    let states = view.states(thread);
    let after = states.partition_point(|state| state.start_ns <= time_ns);
    let state = states[..after].last()?;
    (state.kind == StateKind::Blocked && state.end_ns >= time_ns).then_some(state)
}

/// The mean, without values that include a wait for something else.
fn usual(took_ns: Vec<u64>) -> f64 {
    let middle_ns = median(took_ns.clone()).unwrap_or(0);
    let most_ns = JOURNAL_MOST_FACTOR.get() * middle_ns as f64;
    let usual = took_ns.iter().filter(|&&ns| ns as f64 <= most_ns);
    let (sum_ns, count) = usual.fold((0.0, 0.0), |sum, &ns| (sum.0 + ns as f64, sum.1 + 1.0));
    sum_ns / f64::max(count, 1.0)
}
