//! Commits that wait for a second copy of the log.

use crate::support::{MS, SECOND, all_on, cpu, memory, session, update, work};
use tierwise_network::{Mode, Outcome, Scenario, replay};
use tierwise_recording::{Role, ThreadClass};
use tierwise_work::{Grouping, Session, Step, SyncScript, Turn, Work};

/// Clients that commit, and one who copies their log: each flush of the copy is one write.
fn copied(clients: u32, waited_for: bool) -> Work {
    let mut work = work(clients, &update(200), Grouping::LeaderFollower);
    work.scripts = vec![SyncScript {
        writes: vec![(1 << 20, 16)],
        flushes: 1,
        journal_writes: Vec::new(),
        by_caller: false,
        shared: false,
        ..SyncScript::default()
    }];
    let sync = Step::Sync {
        role: Role::Log,
        script: 0,
    };
    let mut steps = vec![Step::AwaitLog, cpu(20), sync, cpu(20)];
    steps.extend(waited_for.then_some(Step::Acknowledge));
    let copier = session("copier", 3, &steps);
    let silent = |turn: &Turn| Turn {
        ends: false,
        ..*turn
    };
    work.sessions.push(Session {
        class: ThreadClass::LogWriter,
        turns: copier.turns.iter().map(silent).collect(),
        ..copier
    });
    work
}

fn answer(work: &Work, scenario: &Scenario) -> Outcome {
    replay(work, scenario).expect("a scenario that can be")
}

fn rate(work: &Work) -> f64 {
    let outcome = answer(work, &all_on(memory(4000.0), 20 * SECOND, 1));
    outcome.transactions as f64 / outcome.elapsed_s
}

#[test]
fn one_client_waits_for_both_one_after_the_other() {
    // 0.21 ms of its own, 4 ms of the log, 0.02 ms and 4 ms of the copy, 0.02 ms until it answers.
    let both = rate(&copied(1, true));
    assert!((both / (1000.0 / 8.27) - 1.0).abs() < 0.01, "{both}");
    let unwaited = rate(&copied(1, false));
    let none = rate(&work(1, &update(200), Grouping::LeaderFollower));
    assert!((unwaited / none - 1.0).abs() < 0.02, "{unwaited} {none}");
}

#[test]
fn many_clients_share_flushes_of_the_copy_too() {
    let (both, none) = (rate(&copied(20, true)), rate(&copied(20, false)));
    assert!(both > 6.0 * rate(&copied(1, true)), "{both}");
    assert!(both < 0.9 * none, "{both} {none}");
}

#[test]
fn the_copy_goes_on_as_long_as_there_are_clients() {
    // More commits than recorded cycles of the copy.
    let scenario = Scenario {
        mode: Mode::Once,
        ..all_on(memory(100.0), MS, 1)
    };
    assert_eq!(answer(&copied(2, true), &scenario).transactions, 100);
}
