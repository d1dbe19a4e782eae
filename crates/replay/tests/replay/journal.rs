//! The threads of file systems' journals: what a commit waits for beside its device.

use tierwise_recording::Role;
use tierwise_replay::replay;
use tierwise_work::{Grouping, JournalRules, Step, SyncScript, WakeupRules, WarmupCost, Work};

use crate::support::{all_on, cpu, memory, work};

const RULES: JournalRules = JournalRules {
    begins_ns: 10_000,
    goes_on_ns: 15_000,
    ends_ns: 12_000,
    relays_ns: 5_000,
};

/// A session that makes a file durable again and again; cores take so long to start.
fn syncing(journal: JournalRules, journal_writes: Vec<(u64, u32)>, starts_us: u32) -> Work {
    let sync = Step::Sync {
        role: Role::Data,
        script: 0,
    };
    Work {
        journal,
        scripts: vec![SyncScript {
            writes: vec![(0, 8)],
            range: (0, 8),
            flushes: 2,
            journal_writes,
            by_caller: false,
        }],
        wakeups: WakeupRules::new(1.0, 0.0, starts_us * 1000),
        ..work(1, &[cpu(50), sync], Grouping::Alone)
    }
}

fn turn_us(work: &Work, latency_us: f64) -> f64 {
    // About ten thousand turns.
    let span_ns = ((100.0 + 3.0 * latency_us) * 1e3) as u64 * 10_000;
    let scenario = all_on(memory(latency_us), span_ns, 1);
    let outcome = replay(work, &scenario).expect("a scenario that can be");
    outcome.elapsed_s * 1e6 / outcome.turns as f64
}

/// What rules add to a turn on a device without a volatile cache, which is not flushed.
fn added_us(
    journal_writes: &[(u64, u32)],
    starts_us: u32,
    latency_us: f64,
    cpu: WarmupCost,
) -> f64 {
    let [with, without] = [RULES, JournalRules::default()].map(|rules| {
        let work = Work {
            cpu,
            ..syncing(rules, journal_writes.to_vec(), starts_us)
        };
        turn_us(&work, latency_us)
    });
    with - without
}

#[test]
fn a_commit_of_the_journal_starts_its_thread_three_times() {
    let warm = crate::support::warm();
    let both = [(100, 16), (116, 8)];
    assert!(added_us(&[], 7, 20.0, warm).abs() < 0.1);
    for starts_us in [0, 7, 30] {
        let added = added_us(&both, starts_us, 20.0, warm);
        let expected = 37.0 + 3.0 * f64::from(starts_us);
        assert!((added - expected).abs() < 1.0, "{added} for {expected}");
        // Without blocks before its record nothing is waited for in between.
        let added = added_us(&both[1..], starts_us, 20.0, warm);
        let expected = 22.0 + 2.0 * f64::from(starts_us);
        assert!((added - expected).abs() < 1.0, "{added} for {expected}");
    }
}

#[test]
fn a_thread_that_waited_for_long_takes_longer() {
    let both = [(100, 16), (116, 8)];
    let added = [20.0, 1000.0, 8000.0]
        .map(|latency_us| added_us(&both, 0, latency_us, WarmupCost::default()));
    assert!(
        added.windows(2).all(|two| two[0] + 5.0 < two[1]),
        "{added:?}"
    );
    assert!(added[0] < 45.0 && added[2] < 200.0, "{added:?}");
}
