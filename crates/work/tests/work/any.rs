//! Whatever was recorded, the work is sound.

use proptest::prelude::*;
use tierwise_recording::{BlockOp, CallKind, NONE, Recording, Role, StateKind, ThreadClass};
use tierwise_work::{Step, Work};

use crate::made::Made;

/// What a thread does next: on a core so long, then a call of a kind on a file, waiting so long for a thread.
type Deed = (u64, usize, u32, u64, u64, u32);

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = (
        1_u64..50_000,
        0..CallKind::ALL.len(),
        0_u32..4,
        0_u64..100_000,
        prop_oneof![Just(0), 1_u64..12_000_000],
        0_u32..5,
    );
    prop::collection::vec(deed, 1..60)
}

fn recording(engine: &str, threads: &[Vec<Deed>]) -> Recording {
    let mut made = Made::new(engine);
    let classes = [
        ThreadClass::Session,
        ThreadClass::Session,
        ThreadClass::Client,
        ThreadClass::Background,
    ];
    for class in classes {
        made.thread(class);
    }
    for role in [
        Some(Role::Log),
        Some(Role::Data),
        Some(Role::Doublewrite),
        None,
    ] {
        made.file(role, 1 << 20);
    }
    for (thread, deeds) in threads.iter().enumerate() {
        let mut now_ns = 0;
        for &(cpu_ns, kind, file, bytes, wait_ns, waker) in deeds {
            let waker = if waker < 4 { waker } else { NONE };
            let begin_ns = now_ns + cpu_ns;
            made.at(thread as u32, now_ns).cpu(cpu_ns).call(
                CallKind::ALL[kind],
                file,
                (bytes & !511, bytes),
                (wait_ns, waker),
            );
            if wait_ns > 0 && file < 3 {
                let op = if bytes % 2 == 0 {
                    BlockOp::Read
                } else {
                    BlockOp::Flush
                };
                made.block(
                    file,
                    thread as u32,
                    op,
                    bytes,
                    (begin_ns + 500, begin_ns + wait_ns),
                );
            }
            now_ns = begin_ns + wait_ns + 2_000;
        }
    }
    made.finish()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn turns_follow_each_other_and_no_time_on_a_core_is_invented(
        threads in prop::collection::vec(deeds(), 4),
        engine in prop::sample::select(vec!["postgres", "sqlite", "rocksdb", "mine"]),
    ) {
        let recording = recording(engine, &threads);
        let Ok(work) = Work::from_recording(&recording) else {
            return Ok(());
        };
        let mut ran_ns = 0;
        for session in &work.sessions {
            let mut next = 0;
            for turn in &session.turns {
                prop_assert_eq!(turn.first_step, next);
                prop_assert!(turn.tail_steps <= turn.steps);
                next += turn.steps;
            }
            prop_assert_eq!(next as usize, session.steps.len());
            for step in &session.steps {
                if let Step::Cpu { time_ns, client: false, .. } = step {
                    ran_ns += u64::from(*time_ns);
                }
            }
        }
        let on_core = recording.states.iter().filter(|state| state.kind == StateKind::Cpu);
        let recorded_ns: u64 = on_core.map(|state| state.end_ns - state.start_ns).sum();
        prop_assert!(ran_ns <= recorded_ns + work.sessions.len() as u64);
        let shares: f64 = work.observed.shares.iter().map(|(_, share)| share).sum();
        prop_assert!((shares - 1.0).abs() < 1e-9);
    }
}
