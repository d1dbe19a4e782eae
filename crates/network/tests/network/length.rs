//! How long work that goes on is counted.

use tierwise_network::{Outcome, Scenario, replay};
use tierwise_work::Grouping;

use crate::support::{SECOND, all_on, memory, update, work};

const CLIENTS: u32 = 4;

fn counted(enough: Option<u64>) -> Outcome {
    let work = work(CLIENTS, &update(200), Grouping::LeaderFollower);
    let scenario = Scenario {
        enough,
        ..all_on(memory(300.0), 5 * SECOND, 1)
    };
    replay(&work, &scenario).expect("a scenario that can be")
}

#[test]
fn a_run_ends_with_enough_transactions_and_gives_the_same_rate() {
    let (whole, short) = (counted(None), counted(Some(2000)));
    assert!((2000..2000 + u64::from(CLIENTS)).contains(&short.transactions));
    assert!(whole.transactions > 10_000);
    let rate = |outcome: &Outcome| outcome.transactions as f64 / outcome.elapsed_s;
    let ratio = rate(&short) / rate(&whole);
    assert!((ratio - 1.0).abs() < 0.03, "{ratio}");
}

#[test]
fn a_run_ends_with_its_span_if_there_is_never_enough() {
    let (whole, long) = (counted(None), counted(Some(1_000_000)));
    assert_eq!(whole.transactions, long.transactions);
    assert!((long.elapsed_s - 5.0).abs() < 1e-9);
}
