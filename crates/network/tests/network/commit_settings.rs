//! Settings that change how commits become durable.

use crate::support::{MS, SECOND, all_on, close, cpu, memory, session, update, work, writers};
use tierwise_network::{CommitSettings, DelayOption, Outcome, RoleIo, UnflushedCommits, replay};
use tierwise_recording::{Role, ThreadClass};
use tierwise_work::{
    CommitDelay, CommitGrouping, Session, Step, SyncRequests, TimeCategory, Turn, TurnPace, Work,
};

const SYNC_LOG: Step = Step::Sync {
    role: Role::Log,
    script: 0,
};

fn unflushed(flush_period_us: u32, writes: bool) -> CommitSettings {
    CommitSettings {
        unflushed: Some(UnflushedCommits {
            flush_period_us,
            writes,
        }),
        ..CommitSettings::default()
    }
}

/// Ten seconds on a device whose requests take 8 ms.
fn answer(work: &Work, commits: CommitSettings) -> Outcome {
    let scenario = tierwise_network::Scenario {
        commits,
        ..all_on(memory(8000.0), 10 * SECOND, 1)
    };
    replay(work, &scenario).expect("a scenario that can be")
}

fn rate(outcome: &Outcome) -> f64 {
    outcome.transactions as f64 / outcome.elapsed_s
}

fn io(outcome: &Outcome, role: Role) -> RoleIo {
    let found = outcome.io.iter().find(|io| io.role == role);
    found.cloned().expect("a role with a device")
}

#[test]
fn commits_that_do_not_wait_take_their_processor_time_alone() {
    // 0.2 ms a transaction; with its own write of the log, the 0.004 ms of that too.
    let one = work(1, &update(200), CommitGrouping::LeaderFollower);
    let without = answer(&one, unflushed(200_000, false));
    close(rate(&without), 5000.0, 0.01);
    close(
        rate(&answer(&one, unflushed(200_000, true))),
        1e6 / 204.0,
        0.01,
    );
    for name in [TimeCategory::LogDevice, TimeCategory::LogQueue] {
        let share = without.shares.iter().find(|share| share.0 == name.name());
        assert!(share.is_none_or(|share| share.1 == 0.0), "{share:?}");
    }
    // Two cores of 0.2 ms each, however many clients there are.
    for grouping in [
        CommitGrouping::Relay,
        CommitGrouping::WriteGroup,
        CommitGrouping::Alone,
    ] {
        let ten = work(10, &update(200), grouping);
        close(rate(&answer(&ten, unflushed(200_000, false))), 1e4, 0.02);
    }
}

#[test]
fn the_log_is_flushed_periodically_with_all_its_bytes() {
    let one = work(1, &update(200), CommitGrouping::LeaderFollower);
    let outcome = answer(&one, unflushed(200_000, false));
    // 5,000 times 600 bytes a second, and less than two pages more for each of the 5 flushes.
    let bytes = io(&outcome, Role::Log).written_bytes as f64 / outcome.elapsed_s;
    assert!((2.9e6..3.1e6).contains(&bytes), "{bytes}");
    let flushes = outcome.transactions as f64 / outcome.commits_per_flush / outcome.elapsed_s;
    close(flushes, 5.0, 0.05);
}

#[test]
fn a_flusher_that_is_slower_than_its_period_flushes_again_and_again() {
    let one = work(1, &update(200), CommitGrouping::LeaderFollower);
    let outcome = answer(&one, unflushed(1000, false));
    close(rate(&outcome), 5000.0, 0.01);
    close(outcome.commits_per_flush, 40.0, 0.05);
}

#[test]
fn one_writer_passes_its_lock_on_without_the_flush() {
    let alone = answer(&writers(1, Vec::new()), unflushed(5_000_000, true));
    close(rate(&alone), 1e6 / 604.0, 0.01);
    // The lock is held for 0.404 ms.
    let many = answer(&writers(8, Vec::new()), unflushed(5_000_000, true));
    close(rate(&many), 1e6 / 409.0, 0.03);
}

#[test]
fn a_sync_of_the_log_flushes_what_no_commit_waited_for() {
    // Each tenth transaction syncs the log, as a checkpoint of SQLite does: 0.2 ms each, and one write of 8 ms.
    let mut steps: Vec<Step> = update(200).repeat(10);
    steps.push(SYNC_LOG);
    let mut one = work(1, &steps, CommitGrouping::Exclusive);
    one.scripts = vec![SyncRequests {
        flushes: 1,
        ..SyncRequests::default()
    }];
    let outcome = answer(&one, unflushed(60_000_000, false));
    close(rate(&outcome), 100.0, 0.01);
    let bytes = io(&outcome, Role::Log).written_bytes as f64 / outcome.transactions as f64;
    assert!((6000.0..3.0 * 8192.0).contains(&bytes), "{bytes}");
}

#[test]
fn a_second_log_is_synced_by_each_so_manieth_group() {
    let sync = Step::Sync {
        role: Role::Archive,
        script: 0,
    };
    let mut one = work(1, &[cpu(200), sync], CommitGrouping::Alone);
    one.log = None;
    one.devices[0].roles.push((Role::Archive, 1 << 26, 1 << 22));
    one.footprints.push((Role::Archive, 1 << 22));
    one.scripts = vec![SyncRequests {
        writes: vec![(0, 8)],
        flushes: 1,
        shared: true,
        ..SyncRequests::default()
    }];
    let every = |groups| {
        let commits = CommitSettings {
            second_log_every: Some(groups),
            ..CommitSettings::default()
        };
        rate(&answer(&one, commits))
    };
    close(every(1), 1e3 / 8.2, 0.01);
    close(every(10), 1e4 / (8.0 + 2.0), 0.01);
    close(every(0), 5000.0, 0.01);
}

#[test]
fn commits_need_not_wait_for_the_replica() {
    let mut copied = work(1, &update(200), CommitGrouping::LeaderFollower);
    copied.scripts = vec![SyncRequests {
        writes: vec![(1 << 20, 16)],
        flushes: 1,
        ..SyncRequests::default()
    }];
    let steps = [Step::AwaitLog, cpu(20), SYNC_LOG, Step::Acknowledge];
    let copier = session("copier", 3, &steps);
    let silent = |turn: &Turn| Turn {
        ends: false,
        ..*turn
    };
    copied.sessions.push(Session {
        class: ThreadClass::LogWriter,
        turns: copier.turns.iter().map(silent).collect(),
        ..copier
    });
    let local = CommitSettings {
        without_replica: true,
        ..CommitSettings::default()
    };
    close(
        rate(&answer(&copied, CommitSettings::default())),
        1e3 / 16.23,
        0.01,
    );
    close(rate(&answer(&copied, local)), 1e3 / 8.21, 0.01);
    close(
        rate(&answer(&copied, unflushed(200_000, false))),
        5000.0,
        0.02,
    );
}

#[test]
fn the_wait_for_more_commits_can_be_set_and_unset() {
    let mut one = work(1, &update(200), CommitGrouping::LeaderFollower);
    let delay = |time_us| CommitSettings {
        commit_delay: Some(DelayOption {
            time_us,
            siblings: 0,
        }),
        ..CommitSettings::default()
    };
    close(rate(&answer(&one, delay(10_000))), 1e3 / 18.21, 0.01);
    if let Some(log) = &mut one.log {
        log.commit_delay = Some(CommitDelay {
            time_ns: 20 * MS as u32,
            siblings: 0,
            from_settings: true,
        });
    }
    close(
        rate(&answer(&one, CommitSettings::default())),
        1e3 / 28.21,
        0.01,
    );
    close(rate(&answer(&one, delay(0))), 1e3 / 8.21, 0.01);
}

#[test]
fn a_setting_of_what_was_not_recorded_is_refused() {
    let mut one = work(1, &update(200), CommitGrouping::LeaderFollower);
    let refused = |work: &Work, commits| {
        let scenario = tierwise_network::Scenario {
            commits,
            ..all_on(memory(8000.0), SECOND, 1)
        };
        replay(work, &scenario).expect_err("refused").to_string()
    };
    let binary_log = CommitSettings {
        second_log_every: Some(0),
        ..CommitSettings::default()
    };
    assert!(refused(&one, binary_log).contains("binary log"));
    let local = CommitSettings {
        without_replica: true,
        ..CommitSettings::default()
    };
    assert!(refused(&one, local).contains("replica"));
    assert!(refused(&one, unflushed(0, false)).contains("without a pause"));
    one.replica_elsewhere = true;
    assert!(refused(&one, unflushed(1000, false)).contains("replica elsewhere"));
    one.log = None;
    assert!(refused(&one, unflushed(1000, false)).contains("waits for the log"));
    let least = CommitSettings {
        least_log: true,
        ..CommitSettings::default()
    };
    assert!(refused(&one, least).contains("waits for the log"));
}

#[test]
fn the_least_log_is_a_page_for_each_flush() {
    let least = CommitSettings {
        least_log: true,
        ..CommitSettings::default()
    };
    let mut steps = update(200);
    steps[1] = Step::Append { size_bytes: 90_000 };
    let one = work(1, &steps, CommitGrouping::LeaderFollower);
    let written = |commits| {
        let outcome = answer(&one, commits);
        close(rate(&outcome), 1e3 / 8.21, 0.01);
        io(&outcome, Role::Log).written_bytes as f64 / outcome.transactions as f64
    };
    assert!(written(CommitSettings::default()) > 90_000.0);
    close(written(least), 8192.0, 0.05);
}

#[test]
fn pages_that_no_client_writes_are_left_out_with_their_syncs() {
    let write = Step::WriteThrough {
        role: Role::Data,
        sector: 1 << 20,
        sectors: 16,
    };
    let sync = Step::Sync {
        role: Role::Data,
        script: 0,
    };
    let mut one = work(1, &[cpu(200), write], CommitGrouping::LeaderFollower);
    one.scripts = vec![SyncRequests {
        writes: vec![(0, 16)],
        flushes: 1,
        ..SyncRequests::default()
    }];
    let checkpointer = session("checkpointer", 1, &[cpu(100_000), write, sync]);
    let silent = |turn: &Turn| Turn {
        ends: false,
        ..*turn
    };
    one.sessions.push(Session {
        class: ThreadClass::Background,
        pace: TurnPace::Time,
        turns: checkpointer.turns.iter().map(silent).collect(),
        starts: vec![0],
        ..checkpointer
    });
    let without = CommitSettings {
        without_page_writes: true,
        ..CommitSettings::default()
    };
    one.observed.span_ns = SECOND;
    // A client writes its own pages. Each second the checkpointer computes, writes one, and syncs another.
    let others = |commits| {
        let outcome = answer(&one, commits);
        let writes = io(&outcome, Role::Data).writes;
        (writes.abs_diff(outcome.transactions), outcome.busy_share)
    };
    let (recorded, left_out) = (others(CommitSettings::default()), others(without));
    assert!(recorded.0 >= 18, "{recorded:?}");
    assert!(left_out.0 <= 1, "{left_out:?}");
    assert!(recorded.1 > left_out.1 + 0.04, "{recorded:?} {left_out:?}");
}
