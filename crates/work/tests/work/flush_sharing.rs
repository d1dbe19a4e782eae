//! How commits share flushes: by the engine's rules, or by which threads wake which.

use tierwise_recording::Recording;
use tierwise_work::{Grouping, Step, Work};

use crate::made::{Made, count, work_of};

const CYCLES: u64 = 25;
const CYCLE_NS: u64 = 400_000;
const FLUSH_NS: u64 = 98_000;

/// One session flushes the log; a second one that it wakes flushes next; a third one is woken by both, or by the second
/// alone.
fn recorded(engine: &str, all_are_woken: bool) -> Recording {
    let mut made = Made::new(engine);
    let [first, second, third] = made.sessions();
    let (log, _) = made.log_and_data();
    for begin_ns in (0..CYCLES).map(|cycle| cycle * CYCLE_NS) {
        made.at(first, begin_ns).sync(log, FLUSH_NS).cpu(280_000);
        let mut doing = made.at(second, begin_ns + 10_000);
        doing.lock(95_000, first);
        doing.cpu(8_000).sync(log, FLUSH_NS).cpu(180_000);
        let mut doing = made.at(third, begin_ns + 10_000);
        if all_are_woken {
            doing.lock(98_000, first);
            doing.cpu(8_000).lock(102_000, second);
        } else {
            doing.lock(210_000, second);
        }
        doing.cpu(170_000);
    }
    made.finish()
}

fn grouping(work: &Work) -> Option<Grouping> {
    work.log.as_ref().map(|log| log.grouping)
}

#[test]
fn an_engine_without_rules_is_inferred_and_the_limits_say_so() {
    for (all_are_woken, expected) in [(true, Grouping::LeaderFollower), (false, Grouping::Relay)] {
        let work = work_of(&recorded("toy", all_are_woken));
        assert_eq!(grouping(&work), Some(expected));
        let said = |limit: &String| limit.contains("\"toy\"") && limit.contains("inferred");
        assert!(work.limits.iter().any(said), "{:?}", work.limits);
    }
}

#[test]
fn the_rules_of_an_engine_come_before_what_its_waits_show() {
    for (engine, expected) in [
        ("postgres", Grouping::LeaderFollower),
        ("mariadb", Grouping::Relay),
        ("rocksdb", Grouping::WriteGroup),
    ] {
        let work = work_of(&recorded(engine, engine == "mariadb"));
        assert_eq!(grouping(&work), Some(expected));
        assert!(!work.limits.iter().any(|limit| limit.contains("no rules")));
    }
}

/// A session leads all flushes; another one comes back at once, and waits for the next.
fn led_by_one() -> Recording {
    let mut made = Made::new("rocksdb");
    let [leader, follower] = made.sessions();
    let (log, _) = made.log_and_data();
    for begin_ns in (0..CYCLES).map(|cycle| cycle * CYCLE_NS) {
        made.at(leader, begin_ns).sync(log, FLUSH_NS).cpu(302_000);
    }
    let mut doing = made.at(follower, 0);
    for _ in 0..CYCLES {
        doing.cpu(10_000);
        doing.lock(CYCLE_NS - 10_000, leader);
    }
    made.finish()
}

#[test]
fn who_waited_when_a_write_group_was_led_has_committed() {
    let work = work_of(&led_by_one());
    for session in &work.sessions {
        let commits = count(&session.steps, |step| *step == Step::Commit) as u64;
        assert!(commits + 2 >= CYCLES, "{commits}");
    }
}

#[test]
fn a_session_that_never_commits_keeps_no_lock() {
    let mut made = Made::new("rocksdb");
    let [leader, other, idler] = made.sessions();
    let (log, _) = made.log_and_data();
    for begin_ns in (0..CYCLES).map(|cycle| cycle * CYCLE_NS) {
        let mut doing = made.at(leader, begin_ns);
        doing.sync(log, FLUSH_NS).cpu(202_000);
        doing.lock(50_000, other);
        doing.cpu(50_000);
        let mut doing = made.at(other, begin_ns);
        doing.cpu(370_000).sync(log, 20_000).cpu(9_000);
    }
    made.at(idler, 0).cpu(CYCLES * CYCLE_NS);
    let work = made.work();
    assert!(!work.locks.is_empty(), "no lock was found");
    for session in &work.sessions {
        let locks = count(&session.steps, |step| matches!(step, Step::Lock { .. })) > 0;
        let commits = session.steps.contains(&Step::Commit);
        assert!(commits || !locks, "{} keeps a lock", session.name);
    }
}
