//! A log from which pages are moved to their places by the work done.

use tierwise_device::Profile;
use tierwise_network::{Outcome, Scenario, replay};
use tierwise_recording::Role;
use tierwise_work::{CheckpointRules, Grouping, Step, SyncScript, Work};

use crate::support::{MS, SECOND, all_on, cpu, memory, right_to_write, work};

/// Pages that each commit puts into the log, and in the log when they are moved.
const PAGES: u32 = 4;
const AFTER: u32 = 40;

/// Clients that change the same pages again and again, or others each time.
fn writers(clients: u32, same: bool) -> Work {
    let steps = [
        cpu(20),
        Step::Lock { lock: 0 },
        cpu(80),
        Step::Frames { count: PAGES },
        Step::Append {
            size_bytes: PAGES * 4120,
        },
        Step::Commit,
        Step::Checkpoint,
    ];
    let mut work = work(clients, &steps, Grouping::Exclusive);
    work.locks = vec![right_to_write(vec![MS])];
    let growing = SyncScript {
        flushes: 2,
        journal_writes: vec![(0, 32), (32, 8)],
        by_caller: false,
        shared: false,
        ..SyncScript::default()
    };
    work.log.as_mut().expect("a log").scripts.push(growing);
    work.scripts = vec![SyncScript::default(); 3];
    work.scripts[1].writes = vec![(0, 8)];
    work.checkpoints = Some(CheckpointRules {
        after_pages: AFTER,
        page_sectors: 8,
        frame_bytes: 4120,
        header_bytes: 32,
        room_bytes: 32 + 4120 * u64::from(AFTER + 2 * PAGES),
        pages: (0..if same { u64::from(PAGES) } else { 10_000 })
            .map(|page| page * 16)
            .collect(),
        growing_ns: 0,
        growing_frame_ns: 0,
        growing_share: 0.0,
        page_ns: 5_000,
        fixed_ns: 0,
        log_script: 0,
        header_script: 1,
        scripts: vec![(1, 2)],
    });
    work
}

fn run(work: &Work, log: Profile, data: Profile) -> Outcome {
    let mut scenario = all_on(log, 5 * SECOND, 1);
    scenario.devices.push(Some(data));
    let scenario = Scenario {
        placement: vec![(Role::Log, 1), (Role::Data, 2)],
        ..scenario
    };
    replay(work, &scenario).expect("a scenario that can be")
}

/// Bytes written by a role for each transaction.
fn written(outcome: &Outcome, role: Role) -> f64 {
    let io = outcome.io.iter().find(|io| io.role == role);
    io.map_or(0, |io| io.written_bytes) as f64 / outcome.transactions as f64
}

fn log_writes(outcome: &Outcome) -> f64 {
    let io = outcome.io.iter().find(|io| io.role == Role::Log);
    io.map_or(0, |io| io.writes) as f64 / outcome.transactions as f64
}

#[test]
fn what_is_moved_follows_the_pages_that_changed() {
    let pages = |same| {
        written(
            &run(&writers(1, same), memory(20.0), memory(20.0)),
            Role::Data,
        ) / 4096.0
    };
    let each = f64::from(PAGES);
    let commits = f64::from(AFTER / PAGES);
    assert!(
        (pages(true) / (each / commits) - 1.0).abs() < 0.05,
        "{}",
        pages(true)
    );
    assert!((pages(false) / each - 1.0).abs() < 0.05, "{}", pages(false));
}

#[test]
fn a_log_whose_pages_are_all_moved_begins_anew() {
    // One write a commit, and that of the header each time that it begins anew.
    let outcome = run(&writers(1, false), memory(20.0), memory(20.0));
    let expected = 1.0 + f64::from(PAGES) / f64::from(AFTER);
    assert!(
        (log_writes(&outcome) / expected - 1.0).abs() < 0.05,
        "{}",
        log_writes(&outcome)
    );
}

#[test]
fn a_log_grows_where_others_commit_while_pages_are_moved() {
    // And each commit that makes it longer writes the journal twice.
    let outcome = run(&writers(4, false), memory(20.0), memory(20_000.0));
    assert!(log_writes(&outcome) > 2.5, "{}", log_writes(&outcome));
    let alone = run(&writers(1, false), memory(20.0), memory(20_000.0));
    assert!(log_writes(&alone) < 1.2, "{}", log_writes(&alone));
    assert!(alone.transactions < outcome.transactions);
}

#[test]
fn rules_that_point_nowhere_are_refused() {
    let mut work = writers(1, true);
    work.scripts.pop();
    let scenario = all_on(memory(20.0), SECOND, 1);
    assert!(replay(&work, &scenario).is_err());
}
