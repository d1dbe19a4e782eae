//! Waits of a flush's leader for more commits: taken from the settings or inferred, and never part of a session's work.

use tierwise_recording::{CallKind, NONE, Recording, ThreadClass, UNKNOWN};
use tierwise_work::{CommitDelay, Step};

use crate::made::{Made, work_of};

const SLEEP_NS: u64 = 20_100_000;
const CYCLE_NS: u64 = 25_000_000;

/// A session that sleeps before each of its flushes, in a call of that kind, and then asks for the next request.
fn recorded(
    engine: &str,
    kind: CallKind,
    settings: &[(&str, &str)],
    sleep_ns: impl Fn(u64) -> u64,
) -> Recording {
    let mut made = Made::new(engine);
    let [session, client] =
        [ThreadClass::Session, ThreadClass::Client].map(|class| made.thread(class));
    let (log, _) = made.log_and_data();
    let socket = made.file(None, 0);
    for cycle in 0..40 {
        let mut doing = made.at(session, cycle * CYCLE_NS);
        doing.receive(socket, 50, (100_000, client)).cpu(50_000);
        doing.call(kind, NONE, (UNKNOWN, 0), (sleep_ns(cycle), NONE));
        doing.cpu(5_000).write(log, cycle * 8192, 8192);
        doing.sync(log, 100_000).send(socket, 20);
        made.at(client, cycle * CYCLE_NS).cpu(20_000);
    }
    let mut recording = made.finish();
    let settings = settings
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_string()));
    recording.about.settings = settings.collect();
    recording
}

fn work(recording: &Recording) -> (Option<CommitDelay>, usize) {
    let work = work_of(recording);
    let steps = work.sessions.iter().flat_map(|session| &session.steps);
    let timers = steps
        .filter(|step| matches!(step, Step::Delay(delay) if delay.timer))
        .count();
    (work.log.expect("a log").commit_delay, timers)
}

#[test]
fn the_settings_say_how_long_and_with_how_many_others() {
    let settings = [("commit_delay", "20000"), ("commit_siblings", "7")];
    for kind in [CallKind::Poll, CallKind::Sleep] {
        let (delay, timers) = work(&recorded("postgres", kind, &settings, |_| SLEEP_NS));
        let delay = delay.expect("the settings say so");
        assert_eq!(
            (delay.time_ns, delay.siblings, delay.from_settings),
            (SLEEP_NS as u32, 7, true)
        );
        assert_eq!(timers, 0, "the wait is the log's");
    }
}

#[test]
fn without_settings_sleeps_of_one_length_tell() {
    for engine in ["postgres", "toy"] {
        let recording = recorded(engine, CallKind::Sleep, &[], |cycle| {
            SLEEP_NS + cycle * 1_000
        });
        let (delay, timers) = work(&recording);
        let delay = delay.expect("every flush had one");
        assert!((20_000_000..20_200_000).contains(&delay.time_ns));
        assert_eq!((delay.siblings, delay.from_settings, timers), (0, false, 0));
        let limits = work_of(&recording).limits;
        assert!(
            limits
                .iter()
                .any(|limit| limit.contains("20.1 ms") && limit.contains("inferred")),
            "{limits:?}"
        );
    }
}

#[test]
fn sleeps_that_are_no_delay_stay_with_the_session() {
    let off = [("commit_delay", "0")];
    let (delay, timers) = work(&recorded("postgres", CallKind::Sleep, &off, |_| SLEEP_NS));
    assert_eq!(
        (delay, timers),
        (None, 40),
        "the settings say that there is none"
    );
    let varied = recorded("postgres", CallKind::Sleep, &[], |cycle| {
        100_000 + cycle * 400_000
    });
    assert_eq!(work(&varied), (None, 40));
    let (delay, _) = work(&recorded("sqlite", CallKind::Sleep, &[], |_| SLEEP_NS));
    assert_eq!(delay, None, "the busy handler's sleeps");
}
