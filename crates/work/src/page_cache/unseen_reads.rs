//! Whether a recording shows which reads the page cache answered.

use tierwise_recording::{Block, BlockOp, Call, CallKind, Role, ThreadClass, UNKNOWN};

use crate::constants::UNSEEN_MOST_SHARE;
use crate::index::rows::Rows;

/// Limit on reads that no call shows.
const MOST_UNSEEN_SECTORS: u64 = 2048;

/// Why the recording does not tell which reads the page cache answered, if it does not.
pub(crate) fn reason(rows: &Rows<'_>, past: &[Role]) -> Option<String> {
    if rows.recording.blocks.is_empty() {
        let unseen = "requests to devices were not recorded, so which reads missed is not known";
        return Some(unseen.to_owned());
    }
    let cached = |call: &&Call| {
        let role = rows.role(call.file);
        call.kind == CallKind::Read && role.is_some_and(|role| !past.contains(&role))
    };
    let reads: Vec<&Call> = rows.recording.calls.iter().filter(cached).collect();
    let most = |what: &dyn Fn(&Call) -> bool| {
        reads.iter().filter(|call| what(call)).count() > reads.len() / 2
    };
    if most(&|call| call.offset_bytes == UNKNOWN) {
        return Some("where in their files most reads were is not known".to_owned());
    }
    if most(&|call| call.asynchronous) {
        let unseen = "most reads were handed in asynchronously, and whether the page cache answered is not seen";
        return Some(unseen.to_owned());
    }
    let share = without_call(rows)?;
    Some(format!(
        "{:.0} % of what was read came without a call, as through mmap, whose hits are not seen",
        share * 100.0
    ))
}

/// The share of the engine's reads that no call explains, if it is too large.
fn without_call(rows: &Rows<'_>) -> Option<f64> {
    let engine = |thread| {
        matches!(
            rows.class(thread),
            Some(ThreadClass::Session | ThreadClass::Background | ThreadClass::LogWriter)
        )
    };
    let ours = |block: &&Block| {
        block.op == BlockOp::Read && rows.role(block.file).is_some() && engine(block.thread)
    };
    let (mut unseen, mut all) = (0, 0);
    for block in rows.recording.blocks.iter().filter(ours) {
        let sectors = u64::from(block.sectors);
        all += sectors;
        if rows.call_at(block.thread, block.issued_ns).is_none() {
            unseen += sectors;
        }
    }
    let share = unseen as f64 / all.max(1) as f64;
    (unseen > MOST_UNSEEN_SECTORS && share > UNSEEN_MOST_SHARE.get()).then_some(share)
}
