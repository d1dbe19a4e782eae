//! An engine that lets one session at a time write (SQLite): when the right to write is taken, what commits.

use crate::made::{Made, count, work_of};
use tierwise_recording::{CallKind, NONE, Recording, Role, StateKind, ThreadClass, UNKNOWN};
use tierwise_work::{Step, Work};

const TURNS: u64 = 10;

/// Two sessions: one finds the database taken, sleeps twice and then does all its transaction; the other is never
/// kept waiting, and after its commit moves the log's pages to their places.
fn writers() -> Recording {
    let mut made = Made::new("sqlite");
    let [sleeper, other] = made.sessions();
    let (log, data) = made.log_and_data();
    for turn in 0..TURNS {
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
    assert_eq!(locks.len(), TURNS as usize);
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
    assert_eq!(locks.len(), TURNS as usize);
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
    assert_eq!(count(&|step| *step == Step::Commit), TURNS);
    let syncs =
        |role: Role| move |step: &Step| matches!(*step, Step::Sync { role: of, .. } if of == role);
    assert_eq!(count(&syncs(Role::Log)), TURNS);
    assert_eq!(count(&syncs(Role::Data)), TURNS);
    assert!((0.99..=1.01).contains(&work.observed.commits_per_flush));
}

/// A session that writes as soon as it has committed: it has all pages, so nothing but time on a core, of which the
/// kernel tells as one, lies between a flush and the next write.
fn at_once() -> Recording {
    let mut made = Made::new("sqlite");
    let session = made.thread(ThreadClass::Session);
    let (log, _) = made.log_and_data();
    let mut doing = made.at(session, 0);
    for turn in 0..TURNS {
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
    assert_eq!(locks.len(), TURNS as usize);
    assert!(locks.iter().all(|ns| *ns == 30_000), "{locks:?}");
}
