//! Stages of a sync, and the range of sectors it covers.

use tierwise_work::SyncScript;

/// A stage of a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Data,
    /// Blocks of the file system's journal.
    Journal,
    Flush,
    /// The journal's commit record.
    Record,
    Done,
}

/// Stage by number. Source: `jbd2_journal_commit_transaction` (fs/jbd2/commit.c) waits for the journal's blocks, then
/// sends the commit record with `REQ_PREFLUSH | REQ_FUA`, which blk-flush.c turns into a flush, the write and another
/// flush. So the record, though next to the blocks, comes a revolution of a disk later.
///
/// A session that writes the journal itself and flushes once does so after the record.
pub(crate) fn stage(number: u32, flushes: u32, by_caller: bool) -> Stage {
    match (number, flushes) {
        (0, _) => Stage::Data,
        (1, _) => Stage::Journal,
        (2, 1) if by_caller => Stage::Record,
        (3, 1) if by_caller => Stage::Flush,
        (2, 0) | (3, 1..) => Stage::Record,
        (2, _) => Stage::Flush,
        (number, _) if number < flushes + 3 => Stage::Flush,
        _ => Stage::Done,
    }
}

/// First sector and end of the range a sync covers; everything where the work does not say.
pub(crate) fn range(script: &SyncScript) -> (u64, u64) {
    if script.range.1 == 0 {
        (0, u64::MAX)
    } else {
        script.range
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_stands_between_the_flushes() {
        let stages = |flushes| (0..7).map(move |number| stage(number, flushes, false));
        let until_done = |flushes| -> Vec<_> {
            stages(flushes)
                .take_while(|stage| *stage != Stage::Done)
                .collect()
        };
        use Stage::{Data, Done, Flush, Journal, Record};
        assert_eq!(until_done(0), [Data, Journal, Record]);
        assert_eq!(until_done(1), [Data, Journal, Flush, Record]);
        assert_eq!(until_done(2), [Data, Journal, Flush, Record, Flush]);
        assert_eq!(until_done(3), [Data, Journal, Flush, Record, Flush, Flush]);
        let by_caller = (0..5).map(|number| stage(number, 1, true));
        assert!(by_caller.eq([Data, Journal, Record, Flush, Done]));
    }
}
