//! An engine that lets one session at a time write; the others sleep and ask again.

use crate::support::{MS, SECOND, all_on, memory, writers};
use tierwise_network::replay;
use tierwise_work::Work;

fn rate(work: &Work, latency_us: f64) -> f64 {
    let outcome = replay(work, &all_on(memory(latency_us), 20 * SECOND, 1));
    let outcome = outcome.expect("a scenario that can be");
    outcome.transactions as f64 / outcome.elapsed_s
}

#[test]
fn one_writes_at_a_time_whatever_the_number_of_clients() {
    // 0.4 ms on a core, 0.01 ms to lead, a write of 4 ms: no more than one in 4.4 ms.
    for clients in [1, 4, 16] {
        let rate = rate(&writers(clients, vec![MS, 2 * MS, 5 * MS]), 4000.0);
        assert!(rate < 1000.0 / 4.41, "{clients}: {rate}");
        assert!(rate > 1000.0 / 6.0, "{clients}: {rate}");
    }
}

#[test]
fn sleepers_leave_the_database_to_who_has_just_written() {
    // Who sleeps for so long that it never comes in time costs no more than the time in which nobody writes.
    let alone = rate(&writers(1, Vec::new()), 4000.0);
    let rarely = rate(&writers(4, vec![1000 * MS]), 4000.0);
    assert!((rarely / alone - 1.0).abs() < 0.05, "{rarely} {alone}");
}
