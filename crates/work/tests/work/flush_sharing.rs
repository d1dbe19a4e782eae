//! How commits share flushes: by the engine's rules, or by which threads wake which.

use tierwise_recording::{CallKind, NONE, Recording, ThreadClass, UNKNOWN};
use tierwise_work::{Grouping, Work};

use crate::made::{Doing, Made};

const CYCLES: u64 = 25;
const CYCLE_NS: u64 = 400_000;
const FLUSH_NS: u64 = 98_000;

fn waits(doing: &mut Doing<'_>, time_ns: u64, waker: u32) {
    doing.call(CallKind::Lock, NONE, (UNKNOWN, 0), (time_ns, waker));
}

/// One session flushes the log; a second one that it wakes flushes next; a third one is woken by both, or by the second
/// alone.
fn recorded(engine: &str, all_are_woken: bool) -> Recording {
    let mut made = Made::new(engine);
    let [first, second, third] = [(); 3].map(|()| made.thread(ThreadClass::Session));
    let (log, _) = made.log_and_data();
    for begin_ns in (0..CYCLES).map(|cycle| cycle * CYCLE_NS) {
        made.at(first, begin_ns).sync(log, FLUSH_NS).cpu(280_000);
        let mut doing = made.at(second, begin_ns + 10_000);
        waits(&mut doing, 95_000, first);
        doing.cpu(8_000).sync(log, FLUSH_NS).cpu(180_000);
        let mut doing = made.at(third, begin_ns + 10_000);
        if all_are_woken {
            waits(&mut doing, 98_000, first);
            waits(doing.cpu(8_000), 102_000, second);
        } else {
            waits(&mut doing, 210_000, second);
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
        let work = Work::from_recording(&recorded("toy", all_are_woken)).expect("work");
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
        let work = Work::from_recording(&recorded(engine, engine == "mariadb")).expect("work");
        assert_eq!(grouping(&work), Some(expected));
        assert!(!work.limits.iter().any(|limit| limit.contains("no rules")));
    }
}
