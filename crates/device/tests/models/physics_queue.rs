//! In what order a disk serves queued commands, and whom a flush makes wait.

use crate::disk::{OUTER_CYLINDER, profile, request};
use tierwise_device::{Completion, Device, Nanos, Op, Request};

/// Time at which each of the requests completes, all submitted at time 0, in the order given.
fn completions(changes: &[(&str, &str)], requests: &[Request]) -> Vec<Nanos> {
    let mut device = profile(changes).build(1);
    for (id, &request) in requests.iter().enumerate() {
        device.submit(0, id as u64, request);
    }
    let mut all: Vec<Completion> = Vec::new();
    while let Some(event) = device.next_event() {
        device.advance(event, &mut all);
    }
    all.sort_by_key(|completion| completion.id);
    all.iter().map(|completion| completion.at).collect()
}

/// Indices of the requests in order of completion.
fn order(changes: &[(&str, &str)], requests: &[Request]) -> Vec<usize> {
    let at = completions(changes, requests);
    let mut order: Vec<usize> = (0..at.len()).collect();
    order.sort_by_key(|&index| at[index]);
    order
}

fn reads(cylinders: &[u64]) -> Vec<Request> {
    let read = |&cylinder: &u64| request(Op::Read, cylinder * OUTER_CYLINDER, 8);
    cylinders.iter().map(read).collect()
}

#[test]
fn first_come_first_served_keeps_the_order() {
    let requests = reads(&[20_000, 100, 40_000, 19_000]);
    assert_eq!(order(&[], &requests), [0, 1, 2, 3]);
}

#[test]
fn shortest_seek_first_takes_the_nearest_cylinder() {
    let requests = reads(&[20_000, 100, 40_000, 19_000]);
    let sstf = [("policy", "\"sstf\"")];
    // From 20,000: 19,000, then 100 and 40,000 are 18,900 and 21,000 away.
    assert_eq!(order(&sstf, &requests), [0, 3, 1, 2]);
}

#[test]
fn the_more_a_policy_knows_the_sooner_all_is_done() {
    let scattered: Vec<u64> = (1..200u64).map(|index| index * 30_911 % 49_999).collect();
    let requests = reads(&scattered);
    let last = |policy| {
        let changes = [("policy", policy), ("depth", "32")];
        completions(&changes, &requests).into_iter().max()
    };
    let (fcfs, sstf, sptf) = (last("\"fcfs\""), last("\"sstf\""), last("\"sptf\""));
    assert!(sptf < sstf && sstf < fcfs, "{sptf:?}, {sstf:?}, {fcfs:?}");
}

#[test]
fn a_command_past_its_age_limit_is_next() {
    // The distant read is older than the near ones; it may wait no longer than one command takes.
    let requests = reads(&[20_000, 45_000, 20_001, 20_002, 20_003]);
    let sstf = ("policy", "\"sstf\"");
    assert_eq!(order(&[sstf], &requests), [0, 2, 3, 4, 1]);
    assert_eq!(
        order(&[sstf, ("age_limit_us", "1000")], &requests)[..2],
        [0, 1]
    );
}

/// A cached write, a flush and a read elsewhere: when the flush and when the read ends.
fn flush_and_read(flush: &str) -> (Nanos, Nanos) {
    let requests = [
        request(Op::Write, 0, 8),
        request(Op::Write, 30_000 * OUTER_CYLINDER, 8),
        request(Op::Flush, 0, 0),
        request(Op::Read, 0, 8),
    ];
    let at = completions(&[("write_cache", "true"), ("flush", flush)], &requests);
    assert!(at[1] < 1_000_000, "a cached write took {} ns", at[1]);
    (at[2], at[3])
}

#[test]
fn a_queued_flush_lets_a_read_from_the_buffer_go_on() {
    let (flush, read) = flush_and_read("\"queued\"");
    assert!(
        read < 1_000_000 && flush > 5_000_000,
        "read {read} ns, flush {flush} ns"
    );
}

#[test]
fn a_flush_that_drains_holds_back_what_comes_after_it() {
    let (flush, read) = flush_and_read("\"drain\"");
    assert!(
        flush > 5_000_000 && read > flush,
        "read {read} ns, flush {flush} ns"
    );
    let clean = [request(Op::Flush, 0, 0), request(Op::Flush, 0, 0)];
    assert_eq!(
        completions(&[("flush", "\"drain\"")], &clean),
        [200_000, 400_000]
    );
    assert_eq!(completions(&[], &clean), [200_000, 200_000]);
}

#[test]
fn a_queued_flush_lets_queued_commands_between_its_writes() {
    let mut requests: Vec<Request> = (0..4)
        .map(|index| request(Op::Write, (10_000 * index + 5_000) * OUTER_CYLINDER, 8))
        .collect();
    requests.push(request(Op::Flush, 0, 0));
    requests.extend(reads(&[0, 10_000, 20_000, 30_000]));
    let at = completions(&[("write_cache", "true")], &requests);
    assert!(
        at[5] < at[4],
        "first read at {} ns, flush at {} ns",
        at[5],
        at[4]
    );
    let drained = completions(
        &[("write_cache", "true"), ("flush", "\"drain\"")],
        &requests,
    );
    assert!(drained[4] < drained[5]);
}

/// Whoever reorders must not lose a turn by it: the next read in sequence needs no positioning.
#[test]
fn reads_in_sequence_are_not_reordered() {
    let read = |index: u64| request(Op::Read, index * 64, 64);
    let requests: Vec<Request> = (0..200).map(read).collect();
    for policy in ["\"sstf\"", "\"sptf\""] {
        let changes = [("policy", policy), ("depth", "8")];
        let order = order(&changes, &requests);
        assert!(order.is_sorted(), "{policy}: {order:?}");
    }
}
