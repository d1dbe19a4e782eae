//! What a recording tells of the page cache.

use proptest::prelude::*;
use tierwise_recording::{BlockOp, CallKind, NONE, Recording, Role, ThreadClass};
use tierwise_work::{Reuse, Step, Work};

use crate::made::{Made, work_of};

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

fn reuses(work: &Work) -> Vec<Reuse> {
    let mut reuse = Reuse::UNKNOWN;
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
    let [first, again, late] = [Reuse::NEVER, Reuse::after(7), Reuse::after(5)];
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
    let (first, again) = (Reuse::NEVER, Reuse::after(5));
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
    assert_eq!(reuses(&whole)[3], Reuse::after(5));
    recording.about.duration_s *= 10.0;
    let work = work_of(&recording);
    assert!(reuses(&work).iter().all(|reuse| *reuse == Reuse::UNKNOWN));
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
    assert_eq!(reuses(&work), [Reuse::NEVER; 5]);
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
