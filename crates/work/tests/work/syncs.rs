//! What makes files and directories durable asks of devices.

use crate::made::Made;
use tierwise_recording::{BlockOp, CallKind, NONE, UNKNOWN};
use tierwise_work::{Step, SyncScript};

const MS: u64 = 1_000_000;

/// Scripts in the order of syncs.
fn scripts(made: Made) -> Vec<SyncScript> {
    let work = made.work();
    let steps = work.sessions[0].steps.iter();
    let synced = steps.filter_map(|step| match step {
        Step::Sync { script, .. } => Some(work.scripts[*script as usize].clone()),
        _ => None,
    });
    synced.collect()
}

#[test]
fn a_file_that_is_made_anew_elsewhere_is_written_once() {
    let (mut made, session, data) = Made::one_session("sqlite");
    for (turn, sector) in [(0, 1_000), (20 * MS, 5_000)] {
        let mut doing = made.at(session, turn);
        doing.write(data, 0, 512);
        doing.write(data, 512, 7680);
        doing.sync(data, 9 * MS).cpu(MS);
        let sent = (turn + 10_000, turn + 8 * MS);
        made.block(data, session, BlockOp::Write, sector, sent);
    }
    let found = scripts(made);
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|script| script.writes.is_empty()));
}

#[test]
fn pages_that_were_dirty_before_the_burst_are_written_though_calls_wrote_others() {
    let (mut made, session, data) = Made::one_session("sqlite");
    let mut doing = made.at(session, 0);
    doing.write(data, 0, 4096);
    doing.sync(data, 9 * MS).cpu(MS);
    made.block(data, session, BlockOp::Write, 1_000, (10_000, 8 * MS));
    made.block(data, session, BlockOp::Write, 1_800, (11_000, 8 * MS));
    assert_eq!(scripts(made)[0].writes, [(800, 16)]);
}

#[test]
fn who_writes_the_journal_itself_flushes_as_often_as_was_seen() {
    for (thread_is_caller, flushes) in [(true, 1), (false, 2)] {
        let (mut made, session, data) = Made::one_session("sqlite");
        made.at(session, 0).sync(data, 9 * MS).cpu(MS);
        let by = if thread_is_caller { session } else { NONE };
        made.journal_by(by, data, 9_000, (MS, 2 * MS));
        made.block(data, NONE, BlockOp::Flush, 0, (2 * MS, 3 * MS));
        let script = &scripts(made)[0];
        assert_eq!(
            (script.by_caller, script.flushes),
            (thread_is_caller, flushes)
        );
    }
}

#[test]
fn to_make_a_directory_durable_writes_the_journal_of_its_files() {
    let (mut made, session, data) = Made::one_session("sqlite");
    let directory = made.directory_of(data);
    let mut doing = made.at(session, 0);
    doing.call(CallKind::Sync, directory, (UNKNOWN, 0), (9 * MS, NONE));
    doing.cpu(MS);
    made.journal_by(session, data, 9_000, (MS, 2 * MS));
    made.block(data, NONE, BlockOp::Flush, 0, (2 * MS, 3 * MS));
    let found = scripts(made);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].journal_writes.len(), found[0].flushes), (1, 1));
    assert!(found[0].writes.is_empty() && found[0].range.0 == found[0].range.1);
}
