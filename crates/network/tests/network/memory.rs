//! Reads under another size of memory.

use proptest::prelude::*;
use tierwise_network::{MissAssumption, Outcome, ReplayMode, Scenario, replay};
use tierwise_recording::PAGE_BYTES;
use tierwise_recording::Role;
use tierwise_work::{
    CommitGrouping, PageCache, ReadCpu, ReadReuse, ReuseDistanceClass, Step, Work,
};

use crate::support::{all_on, cpu, memory, work};

const MIB: u64 = 1 << 20;

/// One read: how many other pages were used since its own, if that is known, and whether the cache answered.
type Use = (Option<u64>, bool);

/// A client that reads here and there on a machine of 64 MiB, of which the page cache held between 30 and 50.
fn reader(uses: &[Use]) -> Work {
    let mut steps = Vec::new();
    for (&(pages, found), place) in uses.iter().zip(0..) {
        let (role, sector, sectors) = (Role::Data, place * 4096, 8);
        steps.push(Step::Reuse(ReadReuse::cached(
            pages.map_or(ReuseDistanceClass::UNKNOWN, ReuseDistanceClass::after),
        )));
        steps.push(if found {
            Step::CachedRead {
                role,
                sector,
                sectors,
            }
        } else {
            Step::Read {
                role,
                sector,
                sectors,
            }
        });
        steps.push(cpu(10));
    }
    Work {
        memory_bytes: 64 * MIB,
        page_cache: PageCache {
            least_bytes: 30 * MIB,
            likely_bytes: 40 * MIB,
            most_bytes: 50 * MIB,
            ..PageCache::default()
        },
        ..work(1, &steps, CommitGrouping::Alone)
    }
}

fn asked(work: &Work, memory_bytes: Option<u64>, misses: MissAssumption) -> Outcome {
    let scenario = Scenario {
        mode: ReplayMode::Once,
        memory_bytes,
        misses,
        ..all_on(memory(1000.0), 1, 7)
    };
    replay(work, &scenario).expect("a scenario that can be")
}

fn reads(outcome: &Outcome) -> u64 {
    outcome.io.iter().map(|io| io.reads).sum()
}

/// Uses as a cache of 40 MiB would have answered them, with some of unknown reuse.
fn uses() -> impl Strategy<Value = Vec<Use>> {
    let held = 40 * MIB / PAGE_BYTES;
    let known = (0..2 * held).prop_map(move |pages| (Some(pages), pages < held));
    let unknown = any::<bool>().prop_map(|found| (None, found));
    prop::collection::vec(prop_oneof![4 => known, 1 => unknown], 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn more_memory_never_misses_more(uses in uses()) {
        let work = reader(&uses);
        let sizes = [16, 40, 64, 80, 200];
        let answers = sizes.map(|size| asked(&work, Some(size * MIB), MissAssumption::Likely));
        for pair in answers.windows(2) {
            prop_assert!(reads(&pair[1]) <= reads(&pair[0]));
            prop_assert!(pair[1].elapsed_s <= pair[0].elapsed_s + 1e-9);
        }
    }

    #[test]
    fn the_recorded_size_changes_nothing(uses in uses()) {
        let work = reader(&uses);
        for misses in [MissAssumption::Fewest, MissAssumption::Likely, MissAssumption::Most] {
            let same = asked(&work, Some(64 * MIB), misses);
            prop_assert_eq!(&same, &asked(&work, None, MissAssumption::Likely));
        }
    }

    #[test]
    fn what_is_not_known_lies_between_its_bounds(uses in uses(), size in 1_u64..300) {
        let work = reader(&uses);
        let all = [MissAssumption::Fewest, MissAssumption::Likely, MissAssumption::Most];
        let counts = all.map(|misses| reads(&asked(&work, Some(size * MIB), misses)));
        prop_assert!(counts[0] <= counts[1] && counts[1] <= counts[2], "{:?}", counts);
    }
}

#[test]
fn a_page_is_read_from_the_device_once_the_cache_is_too_small_for_it() {
    let work = reader(&[(Some(20 * MIB / PAGE_BYTES), true)]);
    // 50 turns; 43 MiB of memory leave 19 for pages.
    assert_eq!(
        reads(&asked(&work, Some(43 * MIB), MissAssumption::Likely)),
        50
    );
    assert_eq!(
        reads(&asked(&work, Some(46 * MIB), MissAssumption::Likely)),
        0
    );
    let first = reader(&[(Some(u64::MAX), false)]);
    assert_eq!(
        reads(&asked(&first, Some(1 << 40), MissAssumption::Fewest)),
        50
    );
}

#[test]
fn a_reader_that_goes_on_finds_what_was_read_ahead() {
    let far = Step::Reuse(ReadReuse::cached(ReuseDistanceClass::after(1 << 20)));
    let look = |place: u64| Step::CachedRead {
        role: Role::Data,
        sector: place * 256,
        sectors: 256,
    };
    let steps: Vec<Step> = (0..100)
        .flat_map(|place| [far, look(place), cpu(1000)])
        .collect();
    let mut work = reader(&[]);
    work.sessions = vec![crate::support::session("reader", 1, &steps)];
    let outcome = asked(&work, Some(32 * MIB), MissAssumption::Likely);
    // A millisecond for the device and one for the processor each, at the same time from the second on.
    assert!(
        (0.1..0.11).contains(&outcome.elapsed_s),
        "{}",
        outcome.elapsed_s
    );
    assert!(
        (100..=101).contains(&reads(&outcome)),
        "{}",
        reads(&outcome)
    );
}

/// A client that reads and finds its pages in the page cache, of an engine with a buffer of 8 MiB.
fn buffered(uses: &[Use]) -> Work {
    let mut work = reader(uses);
    work.page_cache.engine_bytes = 8 * MIB;
    work.buffer_reuse.pages = 100 * MIB / PAGE_BYTES;
    work.read_cpu = ReadCpu {
        cached_ns: 1000.0,
        device_ns: 4000.0,
    };
    for session in &mut work.sessions {
        for step in &mut session.steps {
            if let Step::Reuse(reuse) = step {
                reuse.buffer = reuse.cache;
            }
        }
    }
    work
}

fn with_buffer(work: &Work, buffer_bytes: u64, misses: MissAssumption) -> Outcome {
    let scenario = Scenario {
        mode: ReplayMode::Once,
        memory_bytes: Some(work.memory_bytes + buffer_bytes - work.page_cache.engine_bytes),
        buffer_bytes: Some(buffer_bytes),
        misses,
        ..all_on(memory(1000.0), 1, 7)
    };
    replay(work, &scenario).expect("a scenario that can be")
}

#[test]
fn a_larger_buffer_spares_the_call_with_its_device_time_and_its_processor_time() {
    let far = 40 * MIB / PAGE_BYTES;
    let work = buffered(&[(Some(far), false)]);
    let small = with_buffer(&work, 9 * MIB, MissAssumption::Likely);
    let large = with_buffer(&work, 60 * MIB, MissAssumption::Likely);
    assert_eq!((reads(&small), reads(&large)), (50, 0));
    // 50 turns of 10 µs on a core, of which the call took 4.
    assert!(
        (large.elapsed_s - 300e-6).abs() < 2e-6,
        "{}",
        large.elapsed_s
    );
}

#[test]
fn a_buffer_for_all_pages_answers_reads_of_unknown_reuse_and_a_smaller_one_some() {
    let unknown: Vec<Use> = vec![(None, false); 100];
    let mut work = buffered(&unknown);
    work.buffer_reuse.unknown = vec![(ReuseDistanceClass::after(0), 100)];
    let count = |size: u64, misses| reads(&with_buffer(&work, size * MIB, misses));
    let all = reads(&asked(&work, None, MissAssumption::Likely));
    assert_eq!(count(100, MissAssumption::Most), 0);
    let half = count(50, MissAssumption::Likely) as f64 / all as f64;
    assert!((0.4..0.6).contains(&half), "{half}");
    assert_eq!(count(50, MissAssumption::Fewest), 0);
    assert!(count(50, MissAssumption::Most) > count(50, MissAssumption::Likely));
}

#[test]
fn a_buffer_that_cannot_be_is_refused() {
    let work = buffered(&[(Some(1), true)]);
    let said = |buffer_bytes, memory_bytes| {
        let scenario = Scenario {
            memory_bytes,
            buffer_bytes: Some(buffer_bytes),
            ..all_on(memory(1000.0), 1, 7)
        };
        replay(&work, &scenario)
            .expect_err("no such buffer")
            .to_string()
    };
    assert!(said(4 * MIB, None).contains("less than the recorded 8 MiB"));
    assert!(said(80 * MIB, None).contains("would take 80 MiB of 64 MiB"));
    let without = reader(&[(Some(1), true)]);
    let scenario = Scenario {
        buffer_bytes: Some(MIB),
        ..all_on(memory(1000.0), 1, 7)
    };
    let refused = replay(&without, &scenario)
        .expect_err("no buffer is known")
        .to_string();
    assert!(refused.contains("does not tell the size"), "{refused}");
}
