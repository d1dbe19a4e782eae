//! The threads of file systems' journals: what a commit waits for beside its device.

use tierwise_recording::Role;
use tierwise_replay::replay;
use tierwise_work::{Grouping, JournalRules, Step, SyncScript, Work};

use crate::support::{all_on, cpu, memory, work};

const RULES: JournalRules = JournalRules {
    begins_ns: 10_000,
    goes_on_ns: 15_000,
    ends_ns: 12_000,
    relays_ns: 5_000,
};

/// A session that makes a file durable again and again.
fn syncing(journal: JournalRules, journal_writes: Vec<(u64, u32)>) -> Work {
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
fn added_us(journal_writes: &[(u64, u32)]) -> f64 {
    let [with, without] = [RULES, JournalRules::default()]
        .map(|rules| turn_us(&syncing(rules, journal_writes.to_vec()), 20.0));
    with - without
}

#[test]
fn a_commit_of_the_journal_runs_its_thread_three_times() {
    let both = [(100, 16), (116, 8)];
    assert!(added_us(&[]).abs() < 0.1);
    let added = added_us(&both);
    assert!((added - 37.0).abs() < 1.0, "{added}");
    // Without blocks before its record nothing is waited for in between.
    let added = added_us(&both[1..]);
    assert!((added - 22.0).abs() < 1.0, "{added}");
}
