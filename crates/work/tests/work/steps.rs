//! Reads, writes, helpers and callers of a library, as steps.

use crate::made::{Made, count, cpu_ns};
use tierwise_recording::{BlockOp, NONE, Role, ThreadClass};
use tierwise_work::{Grouping, Pace, Step};

/// Reads one page after the other: the first from the device, the second while the third is read ahead, the
/// third before it is there.
fn reader() -> Made {
    let (mut made, session, data) = Made::one_session("postgres");
    let mut doing = made.at(session, 0);
    doing.cpu(10_000);
    doing.read(data, (0, 8192), 50_000).cpu(5_000);
    doing.read(data, (8192, 8192), 0).cpu(5_000);
    doing.read(data, (16384, 8192), 30_000).cpu(5_000);
    doing.write(data, 0, 8192);
    doing.empty(data).cpu(5_000);
    made.block(data, session, BlockOp::Read, 1_000, (10_500, 60_500));
    made.block(data, session, BlockOp::Read, 1_032, (67_500, 105_500));
    made
}

#[test]
fn reads_wait_for_their_own_request_or_for_one_under_way() {
    let work = reader().work();
    let steps = &work.sessions[0].steps;
    let moves: Vec<&Step> = steps
        .iter()
        .filter(|step| !matches!(step, Step::Cpu { .. } | Step::Reuse(_)))
        .collect();
    let role = Role::Data;
    assert_eq!(
        moves,
        [
            &Step::Read {
                role,
                sector: 0,
                sectors: 16
            },
            &Step::Submit {
                role,
                sector: 32,
                sectors: 16,
                write: false
            },
            &Step::CachedRead {
                role,
                sector: 16,
                sectors: 16
            },
            &Step::CachedRead {
                role,
                sector: 32,
                sectors: 16
            },
            &Step::Write {
                role,
                sector: 0,
                sectors: 16
            },
            &Step::Forget {
                role,
                sector: 0,
                sectors: 2048
            },
        ]
    );
}

#[test]
fn processor_time_is_kept_and_waits_are_not() {
    let work = reader().work();
    let ran_ns = cpu_ns(&work.sessions[0].steps);
    let rounded = work.sessions[0].steps.len() as u64;
    assert!(
        ran_ns.abs_diff(10_000 + 4 * 5_000 + 5 * 2_000) <= rounded,
        "{ran_ns}"
    );
}

#[test]
fn a_librarys_caller_is_cut_after_commits() {
    let mut made = Made::new("sqlite");
    let session = made.thread(ThreadClass::Session);
    let (log, data) = made.log_and_data();
    let mut doing = made.at(session, 0);
    for turn in 0..10 {
        doing.read(data, (turn * 4096, 4096), 0).cpu(20_000);
        doing.write(log, turn * 4120, 24);
        doing.write(log, turn * 4120 + 24, 4096);
        doing.sync(log, 1_000_000).cpu(2_000);
    }
    let work = made.work();
    let session = &work.sessions[0];
    assert_eq!(
        work.log.as_ref().map(|log| log.grouping),
        Some(Grouping::Exclusive)
    );
    assert_eq!(session.turns.iter().filter(|turn| turn.ends).count(), 10);
    let appended: Vec<u32> = session
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Append { size_bytes } => Some(*size_bytes),
            _ => None,
        })
        .collect();
    assert_eq!(appended, [4120; 10]);
}

#[test]
fn a_wait_for_a_helper_is_a_signal_and_an_await() {
    let mut made = Made::new("postgres");
    let session = made.thread(ThreadClass::Session);
    let helper = made.thread(ThreadClass::Background);
    let data = made.file(Some(Role::Data), 1 << 20);
    for turn in 0..5 {
        let begin = turn * 300_000;
        made.at(session, begin).cpu(100_000).lock(198_000, helper);
        let mut doing = made.at(helper, begin);
        doing.lock(98_000, session);
        doing.read(data, (turn * 8192, 8192), 150_000).cpu(48_000);
    }
    let work = made.work();
    assert_eq!(work.sessions.len(), 2);
    assert_eq!(work.sessions[1].pace, Pace::Loop);
    for session in &work.sessions {
        let signals = count(&session.steps, |step| matches!(step, Step::Signal { .. }));
        let awaits = count(&session.steps, |step| matches!(step, Step::Await { .. }));
        assert_eq!((signals, awaits), (5, 5));
    }
}

#[test]
fn a_wait_for_a_thread_that_none_ends_is_a_timers() {
    let mut made = Made::new("duckdb");
    let session = made.thread(ThreadClass::Session);
    made.at(session, 0)
        .cpu(100_000)
        .lock(20_000_000, NONE)
        .cpu(100_000);
    let work = made.work();
    let timer =
        |step: &Step| matches!(step, Step::Delay(away) if away.timer && away.time_ns == 20_000_000);
    assert!(work.sessions[0].steps.iter().any(timer));
}
