//! A leader that waits for more commits before its flush: that wait is no device's.

use crate::support::{SECOND, all_on, memory, update, work};
use tierwise_network::{Outcome, replay};
use tierwise_work::{CommitDelay, Grouping, TimeCategory};

const DELAY_MS: f64 = 20.0;

/// Eight clients on a device without latency, whose leader waits if at least so many others commit too.
fn outcome(siblings: u32) -> Outcome {
    outcome_on(siblings, 10.0)
}

fn outcome_on(siblings: u32, latency_us: f64) -> Outcome {
    let mut work = work(8, &update(200), Grouping::LeaderFollower);
    if let Some(log) = &mut work.log {
        log.commit_delay = Some(CommitDelay {
            time_ns: (DELAY_MS * 1e6) as u32,
            siblings,
            from_settings: true,
        });
    }
    replay(&work, &all_on(memory(latency_us), 20 * SECOND, 1)).expect("a scenario that can be")
}

fn rate(outcome: &Outcome) -> f64 {
    outcome.transactions as f64 / outcome.elapsed_s
}

#[test]
fn the_wait_stays_on_the_fastest_device() {
    // All eight commit in each wait; a few flushes find fewer than five others in a transaction.
    let all = 8.0 / (DELAY_MS / 1e3);
    let found = outcome(5);
    assert!(
        (0.8..1.15).contains(&(rate(&found) / all)),
        "{}",
        rate(&found)
    );
    assert!(found.latency.p50_us > 0.9 * DELAY_MS * 1e3);
    let slept = found
        .shares
        .iter()
        .find(|(name, _)| name == TimeCategory::Sleep.name());
    assert!(
        slept.is_some_and(|(_, share)| *share > 0.05),
        "{:?}",
        found.shares
    );
}

#[test]
fn the_device_s_time_comes_on_top_of_the_wait() {
    // Sessions of the last flush that wait for a core are still in their transaction: the next leader counts them.
    let both = 8.0 / (DELAY_MS / 1e3 + 0.008);
    let found = outcome_on(5, 8_000.0);
    assert!(
        (0.9..1.1).contains(&(rate(&found) / both)),
        "{}",
        rate(&found)
    );
}

#[test]
fn nobody_waits_where_too_few_others_commit() {
    assert!(
        rate(&outcome(8)) > 5_000.0,
        "seven others are fewer than eight"
    );
    assert!(rate(&outcome(0)) <= 8.0 / (DELAY_MS / 1e3));
}
