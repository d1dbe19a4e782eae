//! A second copy of the log that commits wait for.

use crate::made::{Made, count, work_of};
use tierwise_recording::{BlockOp, NONE, Recording, Role, ThreadClass};
use tierwise_work::{Pace, Step};

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
    assert_eq!(copiers[0].pace, Pace::Loop);
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
