//! Where the time of threads goes.

use crate::made::{Doing, Made};
use tierwise_recording::{BlockOp, CallKind, NONE, Recording, Role, ThreadClass, UNKNOWN};
use tierwise_work::{Breakdown, TimeCategory, breakdown};

const US: u64 = 1_000;
const LEADER: u32 = 0;

fn until(doing: &mut Doing<'_>, at_ns: u64) {
    doing.cpu(at_ns - doing.now_ns());
}

/// Three sessions wait for the leader's flush of 100 to 500 µs: it wakes two of them right after it, and one
/// later for a lock that it holds longer; another session reads pages.
fn made() -> Made {
    let mut made = Made::new("");
    let (log, data) = made.log_and_data();
    let threads: [u32; 5] = made.sessions();
    let mut leader = made.at(LEADER, 0);
    leader.cpu(99 * US).sync(log, 399 * US);
    until(&mut leader, 1_000 * US);
    for (thread, woken_ns) in [(1, 505 * US), (2, 508 * US), (3, 641 * US)] {
        let mut doing = made.at(thread, 0);
        doing.cpu(204 * US).lock(woken_ns - 205 * US, LEADER);
        until(&mut doing, 1_000 * US);
    }
    let mut doing = made.at(threads[4], 0);
    doing.cpu(300 * US).fault(400 * US).cpu(300 * US);
    made.block(data, threads[4], BlockOp::Read, 8, (295 * US, 690 * US));
    made
}

fn time_us(found: &Breakdown, category: TimeCategory, role: Option<Role>) -> u64 {
    let mut slices = found.classes[0].slices.iter();
    let slice = slices.find(|slice| (slice.category, slice.role) == (category, role));
    slice.map_or(0, |slice| (slice.time_s * 1e6).round() as u64)
}

#[test]
fn waits_go_to_what_ended_them() {
    let found = breakdown(&made().finish(), 40);
    let time_us = |category, role| time_us(&found, category, role);
    assert_eq!(time_us(TimeCategory::LogDevice, Some(Role::Log)), 399);
    let followers = (505 - 205) + (508 - 205);
    assert_eq!(time_us(TimeCategory::LogQueue, Some(Role::Log)), followers);
    assert_eq!(time_us(TimeCategory::Lock, None), 641 - 205);
    assert_eq!(time_us(TimeCategory::Read, Some(Role::Data)), 400);
}

#[test]
fn parts_sum_to_the_time_of_every_class() {
    let found = breakdown(&made().finish(), 40);
    assert_eq!(found.sum_error, 0.0);
    let class = &found.classes[0];
    assert_eq!((class.class, class.threads), ("session", 5));
    let shares: f64 = class.slices.iter().map(|slice| slice.share).sum();
    assert!((shares - 1.0).abs() < 1e-9);
    let log = &found.roles[0];
    assert_eq!((log.role, log.syncs), (Some(Role::Log), 1));
    let first = &found.files[0];
    assert_eq!(first.role, Some(Role::Log), "with the followers' time");
}

#[test]
fn a_session_that_only_looks_on_is_no_part_of_the_load() {
    let mut made = made();
    let idle = made.thread(ThreadClass::Session);
    let mut doing = made.at(idle, 0);
    doing.call(CallKind::Receive, NONE, (UNKNOWN, 0), (998 * US, NONE));
    let found = breakdown(&made.finish(), 40);
    let classes = found.classes.iter();
    let counts: Vec<_> = classes.map(|class| (class.class, class.threads)).collect();
    assert_eq!(counts, [("session", 5), ("other", 1)]);
    assert_eq!(time_us(&found, TimeCategory::Client, None), 0);
}

#[test]
fn a_gap_in_a_thread_s_states_is_an_error_of_its_sum() {
    let mut recording = made().finish();
    let states = &mut recording.states;
    let wait = states
        .iter()
        .position(|state| state.end_ns - state.start_ns == 399 * US);
    states.remove(wait.expect("the leader's"));
    let found = breakdown(&recording, 40);
    assert!(
        (found.sum_error - 0.399).abs() < 1e-9,
        "{}",
        found.sum_error
    );
}

#[test]
fn an_empty_recording_has_no_classes() {
    let found = breakdown(&Recording::default(), 40);
    assert!(found.classes.is_empty() && found.files.is_empty());
}

#[test]
fn a_wait_for_asynchronous_calls_is_for_the_first_to_be_done() {
    let mut made = Made::new("");
    let (log, data) = made.log_and_data();
    let session = made.thread(ThreadClass::Session);
    // The woken thread itself reports the completed read, after its wakeup at 300.
    made.asynchronous(session, CallKind::Write, log, (80 * US, 900 * US));
    made.asynchronous(session, CallKind::Read, data, (85 * US, 304 * US));
    let mut doing = made.at(session, 0);
    doing
        .cpu(99 * US)
        .call(CallKind::Await, NONE, (UNKNOWN, 0), (200 * US, NONE));
    let found = breakdown(&made.finish(), 40);
    assert_eq!(time_us(&found, TimeCategory::Read, Some(Role::Data)), 200);
}

#[test]
fn a_client_whose_calls_are_not_traced_waits_for_its_server() {
    let mut made = Made::new("");
    let client = made.thread(ThreadClass::Client);
    made.at(client, 0).cpu(100 * US).fault(200 * US).cpu(US);
    let found = breakdown(&made.finish(), 40);
    assert_eq!(time_us(&found, TimeCategory::Client, None), 200);
}
