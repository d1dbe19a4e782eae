//! Reads under another size of memory.

use proptest::prelude::*;
use tierwise_network::{MissAssumption, Mode, Outcome, Scenario, replay};
use tierwise_recording::Role;
use tierwise_work::{Grouping, PageCache, Reuse, Step, Work};

use crate::support::{all_on, cpu, memory, work};

const MIB: u64 = 1 << 20;
const PAGE_BYTES: u64 = 4096;

/// One read: how many other pages were used since its own, if that is known, and whether the cache answered.
type Use = (Option<u64>, bool);

/// A client that reads here and there on a machine of 64 MiB, of which the page cache held between 30 and 50.
fn reader(uses: &[Use]) -> Work {
    let mut steps = Vec::new();
    for (&(pages, found), place) in uses.iter().zip(0..) {
        let (role, sector, sectors) = (Role::Data, place * 4096, 8);
        steps.push(Step::Reuse(pages.map_or(Reuse::UNKNOWN, Reuse::after)));
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
        ..work(1, &steps, Grouping::Alone)
    }
}

fn asked(work: &Work, memory_bytes: Option<u64>, misses: MissAssumption) -> Outcome {
    let scenario = Scenario {
        mode: Mode::Once,
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
    let far = Step::Reuse(Reuse::after(1 << 20));
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
