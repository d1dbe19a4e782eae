//! Where the time of threads goes.

use proptest::prelude::*;
use tierwise_recording::{BlockOp, CallKind, NONE, Recording, Role, ThreadClass, UNKNOWN};
use tierwise_work::{ReuseDistanceClass, Step, TimeBreakdown, TimeCategory, Work, time_breakdown};

use crate::made::{Doing, Made, work_of};

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

fn time_us(found: &TimeBreakdown, category: TimeCategory, role: Option<Role>) -> u64 {
    let mut slices = found.classes[0].slices.iter();
    let slice = slices.find(|slice| (slice.category, slice.role) == (category, role));
    slice.map_or(0, |slice| (slice.time_s * 1e6).round() as u64)
}

#[test]
fn waits_go_to_what_ended_them() {
    let found = time_breakdown(&made().finish(), 40);
    let time_us = |category, role| time_us(&found, category, role);
    assert_eq!(time_us(TimeCategory::LogDevice, Some(Role::Log)), 399);
    let followers = (505 - 205) + (508 - 205);
    assert_eq!(time_us(TimeCategory::LogQueue, Some(Role::Log)), followers);
    assert_eq!(time_us(TimeCategory::Lock, None), 641 - 205);
    assert_eq!(time_us(TimeCategory::Read, Some(Role::Data)), 400);
}

#[test]
fn parts_sum_to_the_time_of_every_class() {
    let found = time_breakdown(&made().finish(), 40);
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
    let found = time_breakdown(&made.finish(), 40);
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
    let found = time_breakdown(&recording, 40);
    assert!(
        (found.sum_error - 0.399).abs() < 1e-9,
        "{}",
        found.sum_error
    );
}

#[test]
fn an_empty_recording_has_no_classes() {
    let found = time_breakdown(&Recording::default(), 40);
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
    let found = time_breakdown(&made.finish(), 40);
    assert_eq!(time_us(&found, TimeCategory::Read, Some(Role::Data)), 200);
}

#[test]
fn a_client_whose_calls_are_not_traced_waits_for_its_server() {
    let mut made = Made::new("");
    let client = made.thread(ThreadClass::Client);
    made.at(client, 0).cpu(100 * US).fault(200 * US).cpu(US);
    let found = time_breakdown(&made.finish(), 40);
    assert_eq!(time_us(&found, TimeCategory::Client, None), 200);
}

// What a recording tells of the page cache.

const UNIT_BYTES: u64 = 8192;

/// A session that reads pages of 8 KiB, of which the cache held as many as `units`: the rest come from the device.
fn recording(uses: &[u64], units: usize) -> Recording {
    placed(uses, units, |unit| 1_000 + unit * 16)
}

/// The same of a file whose pages lie at these sectors.
fn placed(uses: &[u64], units: usize, sector: impl Fn(u64) -> u64) -> Recording {
    let mut made = Made::new("postgres");
    let session = made.thread(ThreadClass::Session);
    let data = made.file(Some(Role::Data), 1 << 20);
    let mut held: Vec<u64> = Vec::new();
    let mut now_ns = 0;
    for &unit in uses {
        let found = held.iter().position(|other| *other == unit);
        if let Some(place) = found {
            held.remove(place);
        } else if held.len() == units {
            held.remove(0);
        }
        held.push(unit);
        let wait_ns = if found.is_some() { 0 } else { 50_000 };
        let read = (unit * UNIT_BYTES, UNIT_BYTES);
        made.at(session, now_ns)
            .cpu(5_000)
            .call(CallKind::Read, data, read, (wait_ns, NONE));
        if wait_ns > 0 {
            let times = (now_ns + 5_500, now_ns + 55_500);
            made.block(data, session, BlockOp::Read, sector(unit), times);
        }
        now_ns += 7_000 + wait_ns;
    }
    made.finish()
}

fn reuses(work: &Work) -> Vec<ReuseDistanceClass> {
    let mut reuse = ReuseDistanceClass::UNKNOWN;
    let mut found = Vec::new();
    for step in &work.sessions[0].steps {
        match step {
            Step::Reuse(now) => reuse = now.cache,
            Step::CachedRead { .. } | Step::Read { .. } => found.push(reuse),
            _ => {}
        }
    }
    found
}

#[test]
fn reads_know_how_long_before_their_pages_were_used() {
    let recording = recording(&[0, 1, 2, 3, 0, 2], 4);
    let work = work_of(&recording);
    // Two pages each, so that the other one of the two was used since, too.
    let [first, again, late] = [
        ReuseDistanceClass::NEVER,
        ReuseDistanceClass::after(7),
        ReuseDistanceClass::after(5),
    ];
    assert_eq!(reuses(&work), [first, first, first, first, again, late]);
    assert!(work.page_cache.cold);
    assert_eq!(work.page_cache.reason, None);
    assert!(work.page_cache.least_bytes >= 3 * UNIT_BYTES);
}

#[test]
fn pages_are_known_wherever_the_parts_of_their_file_lie() {
    let parts = |unit| if unit < 20 { 90_000 } else { 5_000 } + unit * 16;
    let recording = placed(&[0, 20, 21, 0, 20], 1, parts);
    let work = work_of(&recording);
    let (first, again) = (ReuseDistanceClass::NEVER, ReuseDistanceClass::after(5));
    assert_eq!(reuses(&work), [first, first, first, again, again]);
}

#[test]
fn nothing_is_known_of_pages_across_a_gap_unless_nothing_happened_there() {
    let mut recording = recording(&[0, 1, 2, 0, 1, 2], 4);
    let whole = recording.about.bursts[0];
    let [mut early, mut late] = [whole; 2];
    early.end_ns = recording.calls[2].end_ns;
    late.start_ns = recording.calls[3].start_ns;
    recording.about.bursts = vec![early, late];
    let whole = work_of(&recording);
    assert!(whole.page_cache.cold);
    assert_eq!(reuses(&whole)[3], ReuseDistanceClass::after(5));
    recording.about.duration_s *= 10.0;
    let work = work_of(&recording);
    assert!(
        reuses(&work)
            .iter()
            .all(|reuse| *reuse == ReuseDistanceClass::UNKNOWN)
    );
    assert!(!work.page_cache.cold);
}

#[test]
fn without_requests_to_devices_there_is_a_reason() {
    let mut recording = recording(&[0, 1, 2], 4);
    recording.blocks.clear();
    let work = work_of(&recording);
    let reason = work.page_cache.reason.expect("a reason");
    assert!(reason.contains("not recorded"), "{reason}");
}

#[test]
fn files_read_past_the_page_cache_are_answered_by_no_size_of_it() {
    let mut recording = recording(&[0, 1, 0, 1, 0], 1);
    recording.about.engine = "mariadb".into();
    let settings = &mut recording.about.settings;
    settings.insert("innodb_flush_method".into(), "O_DIRECT".into());
    settings.insert("innodb_buffer_pool_size".into(), "134217728".into());
    let work = work_of(&recording);
    assert_eq!(reuses(&work), [ReuseDistanceClass::NEVER; 5]);
    assert!(work.page_cache.passed);
    assert_eq!(work.page_cache.engine_bytes, 128 << 20);
}

proptest! {
    #[test]
    fn hits_and_misses_tell_what_the_cache_held(
        uses in prop::collection::vec(0_u64..40, 60..200),
        units in 1_usize..45,
    ) {
        let work = work_of(&recording(&uses, units));
        let cache = work.page_cache;
        let held = (units as u64 * UNIT_BYTES) as f64;
        let page = 4096.0;
        prop_assert!(cache.least_bytes as f64 <= 1.1 * held + page, "{:?} {}", cache, held);
        prop_assert!(1.1 * cache.most_bytes as f64 + 2.0 * page >= held, "{:?} {}", cache, held);
    }
}
