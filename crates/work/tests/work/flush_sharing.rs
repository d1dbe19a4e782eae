//! How commits share flushes: by the engine's rules, or by which threads wake which.

use tierwise_recording::{
    BlockOp, CallKind, NONE, Recording, Role, StateKind, ThreadClass, UNKNOWN,
};
use tierwise_work::{CommitDelay, CommitGrouping, Step, TurnPace, Work};

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

fn grouping(work: &Work) -> Option<CommitGrouping> {
    work.log.as_ref().map(|log| log.grouping)
}

#[test]
fn an_engine_without_rules_is_inferred_and_the_limits_say_so() {
    for (all_are_woken, expected) in [
        (true, CommitGrouping::LeaderFollower),
        (false, CommitGrouping::Relay),
    ] {
        let work = work_of(&recorded("toy", all_are_woken));
        assert_eq!(grouping(&work), Some(expected));
        let said = |limit: &String| limit.contains("\"toy\"") && limit.contains("inferred");
        assert!(work.limits.iter().any(said), "{:?}", work.limits);
    }
}

#[test]
fn the_rules_of_an_engine_come_before_what_its_waits_show() {
    for (engine, expected) in [
        ("postgres", CommitGrouping::LeaderFollower),
        ("mariadb", CommitGrouping::Relay),
        ("rocksdb", CommitGrouping::WriteGroup),
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

// Waits of a flush's leader for more commits: taken from the settings or inferred, and never part of a session's work.

const SLEEP_NS: u64 = 20_100_000;
const DELAY_CYCLE_NS: u64 = 25_000_000;

/// A session that sleeps before each of its flushes, in a call of that kind, and then asks for the next request.
fn delayed(
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
        let mut doing = made.at(session, cycle * DELAY_CYCLE_NS);
        doing.receive(socket, 50, (100_000, client)).cpu(50_000);
        doing.call(kind, NONE, (UNKNOWN, 0), (sleep_ns(cycle), NONE));
        doing.cpu(5_000).write(log, cycle * 8192, 8192);
        doing.sync(log, 100_000).send(socket, 20);
        made.at(client, cycle * DELAY_CYCLE_NS).cpu(20_000);
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
        let (delay, timers) = work(&delayed("postgres", kind, &settings, |_| SLEEP_NS));
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
        let recording = delayed(engine, CallKind::Sleep, &[], |cycle| {
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
    let (delay, timers) = work(&delayed("postgres", CallKind::Sleep, &off, |_| SLEEP_NS));
    assert_eq!(
        (delay, timers),
        (None, 40),
        "the settings say that there is none"
    );
    let varied = delayed("postgres", CallKind::Sleep, &[], |cycle| {
        100_000 + cycle * 400_000
    });
    assert_eq!(work(&varied), (None, 40));
    let (delay, _) = work(&delayed("sqlite", CallKind::Sleep, &[], |_| SLEEP_NS));
    assert_eq!(delay, None, "the busy handler's sleeps");
}

// A second copy of the log that commits wait for.

const TURNS: u64 = 20;
const TURN_NS: u64 = 1_000_000;

/// One session, whose log is sent on: it waits for its own flush, then for the sender, who waits for the receiver's.
fn copied() -> Recording {
    let mut made = Made::new("postgres");
    let session = made.thread(ThreadClass::Session);
    let sender = made.thread(ThreadClass::Background);
    let receiver = made.thread(ThreadClass::Session);
    let client = made.thread(ThreadClass::Client);
    let log = made.file(Some(Role::Log), 16 << 20);
    let copy = made.beside(log);
    let socket = made.file(None, 0);
    for turn in 0..TURNS {
        let begin = turn * TURN_NS;
        let mut doing = made.at(session, begin);
        doing.receive(socket, 40, (20_000, client)).cpu(30_000);
        doing.write(log, turn * 8192, 8192);
        doing.sync(log, 100_000);
        doing.poll(300_000, sender).cpu(5_000);
        doing.send(socket, 11);
        doing.poll(TURN_NS - 471_000, client);
        let mut doing = made.at(sender, begin);
        doing.poll(160_000, session).cpu(10_000);
        doing.send(socket, 8192);
        doing.poll(TURN_NS - 176_000, receiver);
        let mut doing = made.at(receiver, begin);
        doing.receive(socket, 8192, (180_000, sender)).cpu(10_000);
        doing.write(copy, turn * 8192, 8192);
        doing.sync(copy, 100_000).send(socket, 40);
        doing.poll(TURN_NS - 302_000, sender);
        for (file, thread, at) in [(log, session, 55_000), (copy, receiver, 195_000)] {
            let (from, sector) = (begin + at, turn * 16 + u64::from(file) * 100_000);
            made.block(file, thread, BlockOp::Write, sector, (from, from + 50_000));
            let flush = (from + 50_000, from + 99_000);
            made.block(file, NONE, BlockOp::Flush, 0, flush);
        }
    }
    made.at(client, 0).cpu(TURNS * TURN_NS);
    made.finish()
}

#[test]
fn a_commit_is_of_both_copies() {
    let work = work_of(&copied());
    let served: Vec<_> = work
        .sessions
        .iter()
        .filter(|session| session.class == ThreadClass::Session)
        .collect();
    assert_eq!(served.len(), 1);
    let commits = count(&served[0].steps, |step| *step == Step::Commit);
    assert_eq!(commits as u64, TURNS);
    let awaits = |step: &Step| matches!(step, Step::Await { .. } | Step::Signal { .. });
    assert_eq!(count(&served[0].steps, awaits), 0);
    assert!((0.95..=1.05).contains(&work.observed.commits_per_flush));
    assert!(work.limits.iter().all(|limit| !limit.contains("left out")));
}

#[test]
fn sender_and_receiver_are_one_loop_of_flushes() {
    let work = work_of(&copied());
    let copiers: Vec<_> = work
        .sessions
        .iter()
        .filter(|session| session.steps.contains(&Step::AwaitLog))
        .collect();
    assert_eq!(copiers.len(), 1);
    assert_eq!(copiers[0].pace, TurnPace::Loop);
    assert_eq!(copiers[0].turns.len() as u64, TURNS);
    assert!(copiers[0].steps.contains(&Step::Acknowledge));
    for step in &copiers[0].steps {
        if let Step::Sync { role, script } = *step {
            assert_eq!(role, Role::Log);
            assert_eq!(work.scripts[script as usize].writes.len(), 1);
        }
    }
    assert_eq!(work.sessions.len(), 2);
}

// An engine that lets one session at a time write (SQLite): when the right to write is taken, what commits.

const WRITES: u64 = 10;

/// Two sessions: one finds the database taken, sleeps twice and then does all its transaction; the other is never
/// kept waiting, and after its commit moves the log's pages to their places.
fn writers() -> Recording {
    let mut made = Made::new("sqlite");
    let [sleeper, other] = made.sessions();
    let (log, data) = made.log_and_data();
    for turn in 0..WRITES {
        let mut doing = made.at(sleeper, turn * 10_000_000);
        doing.cpu(18_000);
        for sleep_ns in [1_000_000, 2_000_000] {
            doing.call(CallKind::Sleep, NONE, (UNKNOWN, 0), (sleep_ns, NONE));
        }
        doing.cpu(98_000);
        doing.write(log, turn * 8192, 4096);
        doing.sync(log, 1_000_000).cpu(2_000);
        let mut doing = made.at(other, turn * 10_000_000);
        doing.cpu(200_000);
        doing.write(log, turn * 8192 + 4096, 4096);
        doing.sync(log, 1_000_000).cpu(2_000);
        doing.sync(log, 100_000);
        doing.write(data, turn * 4096, 4096);
        doing.sync(data, 1_000_000).cpu(2_000);
    }
    made.finish()
}

/// Time on a core before each step of a kind, since the commit before.
fn before(work: &Work, session: usize, wanted: impl Fn(&Step) -> bool) -> Vec<u32> {
    let (mut found, mut cpu_ns) = (Vec::new(), 0);
    for step in &work.sessions[session].steps {
        match step {
            Step::Cpu { time_ns, .. } => cpu_ns += time_ns,
            Step::Commit => cpu_ns = 0,
            step if wanted(step) => found.push(cpu_ns),
            _ => {}
        }
    }
    found
}

#[test]
fn who_slept_may_write_from_the_end_of_the_last_sleep() {
    let work = work_of(&writers());
    let locks = before(&work, 0, |step| matches!(step, Step::Lock { .. }));
    assert_eq!(locks.len(), WRITES as usize);
    // 18 µs, and that of the call that slept first; before it, but in the first turn, the tail of the commit.
    assert!(
        locks.iter().all(|ns| (18_000..25_000).contains(ns)),
        "{locks:?}"
    );
    assert_eq!(work.locks.len(), 1);
    assert_eq!(work.locks[0].keys, 1);
    assert!(work.locks[0].retry_ns.starts_with(&[1_000_000, 2_000_000]));
    // Of the first sleep, after which it sleeps again; what follows the second is its transaction.
    let late_ns = &work.locks[0].late_ns;
    assert!(late_ns.contains(&1_000), "{late_ns:?}");
}

#[test]
fn who_did_not_sleep_took_the_right_as_long_before_it_wrote_as_the_others() {
    let work = work_of(&writers());
    let locks = before(&work, 1, |step| matches!(step, Step::Lock { .. }));
    assert_eq!(locks.len(), WRITES as usize);
    // 200 µs, less 99 that the sleeper wrote after its sleep, which is less the 19 or so before its first try.
    assert!(
        locks.iter().all(|ns| (115_000..135_000).contains(ns)),
        "{locks:?}"
    );
}

#[test]
fn a_flush_that_follows_no_write_to_the_log_is_no_commit() {
    let work = work_of(&writers());
    let count = |wanted: &dyn Fn(&Step) -> bool| count(&work.sessions[1].steps, wanted) as u64;
    assert_eq!(count(&|step| *step == Step::Commit), WRITES);
    let syncs =
        |role: Role| move |step: &Step| matches!(*step, Step::Sync { role: of, .. } if of == role);
    assert_eq!(count(&syncs(Role::Log)), WRITES);
    assert_eq!(count(&syncs(Role::Data)), WRITES);
    assert!((0.99..=1.01).contains(&work.observed.commits_per_flush));
}

/// A session that writes as soon as it has committed: it has all pages, so nothing but time on a core, of which the
/// kernel tells as one, lies between a flush and the next write.
fn at_once() -> Recording {
    let mut made = Made::new("sqlite");
    let session = made.thread(ThreadClass::Session);
    let (log, _) = made.log_and_data();
    let mut doing = made.at(session, 0);
    for turn in 0..WRITES {
        doing.cpu(30_000);
        doing.write(log, turn * 4096, 4096);
        doing.sync(log, 1_000_000);
    }
    let mut recording = made.finish();
    recording.states.dedup_by(|next, last| {
        let goes_on = (next.kind, last.kind) == (StateKind::Cpu, StateKind::Cpu)
            && next.start_ns == last.end_ns;
        if goes_on {
            last.end_ns = next.end_ns;
        }
        goes_on
    });
    recording
}

#[test]
fn what_runs_after_a_commit_is_of_the_next_transaction() {
    let work = work_of(&at_once());
    let locks = before(&work, 0, |step| matches!(step, Step::Lock { .. }));
    assert_eq!(locks.len(), WRITES as usize);
    assert!(locks.iter().all(|ns| *ns == 30_000), "{locks:?}");
}
