//! What holds whatever the work is.

use crate::support::{MS, all_on, hot_lock, memory};
use proptest::prelude::*;
use tierwise_network::{Outcome, ReplayMode, Scenario, replay};
use tierwise_recording::Role;
use tierwise_work::{CommitGrouping, Delay, Session, Step, SyncRequests, Work};

fn step() -> impl Strategy<Value = Step> {
    let role = prop::sample::select(vec![Role::Data, Role::Temp, Role::Index]);
    let file = (role, 0..1u64 << 20, 1..64u32);
    prop_oneof![
        (1_000..200_000u32, any::<bool>())
            .prop_map(|(time_ns, client)| Step::Cpu { time_ns, client }),
        (1_000..1_000_000u64, any::<bool>())
            .prop_map(|(time_ns, timer)| Step::Delay(Delay { time_ns, timer })),
        file.clone().prop_map(|(role, sector, sectors)| Step::Read {
            role,
            sector,
            sectors
        }),
        file.clone()
            .prop_map(|(role, sector, sectors)| Step::CachedRead {
                role,
                sector,
                sectors
            }),
        file.clone()
            .prop_map(|(role, sector, sectors)| Step::Write {
                role,
                sector,
                sectors
            }),
        file.clone()
            .prop_map(|(role, sector, sectors)| Step::WriteThrough {
                role,
                sector,
                sectors
            }),
        (file.clone(), any::<bool>()).prop_map(|((role, sector, sectors), write)| {
            Step::Submit {
                role,
                sector,
                sectors,
                write,
            }
        }),
        file.clone()
            .prop_map(|(role, sector, sectors)| Step::WriteBack {
                role,
                sector,
                sectors
            }),
        file.prop_map(|(role, sector, sectors)| Step::Forget {
            role,
            sector,
            sectors
        }),
        Just(Step::Drain),
        Just(Step::Sync {
            role: Role::Data,
            script: 0
        }),
        (1..20_000u32).prop_map(|size_bytes| Step::Append { size_bytes }),
        Just(Step::Commit),
        Just(Step::Lock { lock: 0 }),
        (0..4u32).prop_map(|number| Step::Signal { number }),
        (0..4u32).prop_map(|number| Step::Await { number }),
    ]
}

fn any_work() -> impl Strategy<Value = Work> {
    let grouping = prop::sample::select(vec![
        CommitGrouping::LeaderFollower,
        CommitGrouping::Relay,
        CommitGrouping::WriteGroup,
        CommitGrouping::Exclusive,
        CommitGrouping::Alone,
    ]);
    let sessions = prop::collection::vec(prop::collection::vec(step(), 1..12), 1..6);
    (sessions, grouping).prop_map(|(sessions, grouping)| {
        let mut work = crate::support::work(0, &[], grouping);
        let named = sessions.iter().enumerate();
        work.sessions = named
            .map(|(at, steps)| Session {
                client: at.checked_sub(1).map(|at| at as u32 / 2),
                ..crate::support::session(&at.to_string(), 20, steps)
            })
            .collect();
        work.locks = vec![hot_lock(2)];
        work.scripts = vec![SyncRequests {
            writes: vec![(64, 32)],
            flushes: 1,
            journal_writes: vec![(0, 8)],
            by_caller: false,
            shared: false,
            range: (0, 0),
        }];
        work
    })
}

/// Whether a session waits for a signal while it has a lock.
fn awaits_with_lock(session: &Session) -> bool {
    let first = |wanted: fn(&Step) -> bool| session.steps.iter().position(wanted);
    let lock = first(|step| matches!(step, Step::Lock { .. }));
    let last = session.turns.first().map_or(0, |turn| turn.steps as usize);
    let mut locked = session.steps[..last].iter().skip(lock.unwrap_or(last));
    locked.any(|step| matches!(step, Step::Await { .. }))
}

fn once(work: &Work, latency_us: f64) -> Outcome {
    let scenario = Scenario {
        mode: ReplayMode::Once,
        ..all_on(memory(latency_us), 1, 7)
    };
    replay(work, &scenario).expect("a scenario that can be")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn every_turn_is_done_once(work in any_work()) {
        let outcome = once(&work, 100.0);
        let turns: usize = work.sessions.iter().map(|session| session.turns.len()).sum();
        prop_assert_eq!(outcome.turns, turns as u64);
        prop_assert_eq!(outcome.transactions, turns as u64);
        prop_assert!(outcome.busy_share <= 1.0 + 1e-9);
        let shares: f64 = outcome.shares.iter().map(|share| share.1).sum();
        prop_assert!(outcome.elapsed_s == 0.0 || (shares - 1.0).abs() < 1e-6, "{}", shares);
    }

    #[test]
    fn requests_are_those_of_the_work(work in any_work()) {
        let outcome = once(&work, 100.0);
        let steps = work.sessions.iter().flat_map(|session| &session.steps);
        let reads = |step: &&Step| matches!(step, Step::Read { .. } | Step::Submit { write: false, .. });
        let wanted = steps.filter(reads).count() as u64;
        let done: u64 = outcome.io.iter().map(|io| io.reads).sum();
        prop_assert!(done <= wanted && (wanted == 0 || done > 0), "{} of {}", done, wanted);
    }

    #[test]
    fn the_same_seed_gives_the_same(work in any_work(), seed in any::<u64>()) {
        let scenario = all_on(memory(50.0), 20 * MS, seed);
        prop_assert_eq!(replay(&work, &scenario), replay(&work, &scenario));
    }

    #[test]
    fn a_much_slower_device_is_not_faster(mut work in any_work()) {
        // Which of several keys is drawn is chance, and another order of events draws others.
        work.locks = vec![hot_lock(1)];
        // Who sleeps between tries, and goes on after the last, may come at a better moment when all is slower.
        let grouping = work.log.as_ref().map(|log| log.grouping);
        prop_assume!(grouping != Some(CommitGrouping::Exclusive));
        // So may who waits with a lock for a signal of a session that needs the lock.
        prop_assume!(!work.sessions.iter().any(awaits_with_lock));
        prop_assert!(once(&work, 2000.0).elapsed_s >= 0.9 * once(&work, 20.0).elapsed_s);
    }
}
