//! Commits on devices whose times are known: what follows from physics, and what was measured of real ones.

use crate::support::{
    SECOND, all_on, close, cpu, exponential, hot_lock, memory, session as session_of, shipped,
    update, work,
};
use tierwise_network::{Outcome, RoleIo, Scenario, replay};
use tierwise_recording::Role;
use tierwise_work::{Delay, Grouping, Step, SyncScript, Work};

fn rate(work: &Work, scenario: &Scenario) -> f64 {
    let outcome = answer(work, scenario);
    outcome.transactions as f64 / outcome.elapsed_s
}

fn answer(work: &Work, scenario: &Scenario) -> Outcome {
    replay(work, scenario).expect("a scenario that can be")
}

#[test]
fn one_client_commits_once_a_revolution() {
    let work = work(1, &update(200), Grouping::LeaderFollower);
    close(
        rate(&work, &all_on(shipped("hdd-7k2"), 20 * SECOND, 1)),
        120.0,
        0.02,
    );
}

#[test]
fn ten_clients_share_flushes() {
    // Ten clients at an 8 ms flush: who commits meanwhile takes part in the next, so that half of them, and those
    // who arrive while it is on its way, are in each; 4.6 were measured.
    let work = work(10, &update(209), Grouping::LeaderFollower);
    let outcome = answer(&work, &all_on(memory(8000.0), 20 * SECOND, 1));
    assert!(
        (4.0..5.5).contains(&outcome.commits_per_flush),
        "{}",
        outcome.commits_per_flush
    );
}

#[test]
fn ten_clients_share_syncs_of_a_second_log() {
    // Without a first log, each transaction waits for one sync of the second.
    let sync = Step::Sync {
        role: Role::Archive,
        script: 0,
    };
    let mut shared = work(10, &[cpu(200), sync], Grouping::Alone);
    shared.log = None;
    let place = (Role::Archive, 1 << 26, 1 << 22);
    shared.devices[0].roles.push(place);
    shared.footprints.push((place.0, place.2));
    let script = |shared| SyncScript {
        writes: vec![(0, 8)],
        flushes: 1,
        shared,
        ..SyncScript::default()
    };
    let syncs = |work: &Work| {
        let outcome = answer(work, &all_on(shipped("hdd-7k2"), 20 * SECOND, 1));
        let archive = |io: &&RoleIo| io.role == Role::Archive;
        let writes = outcome.io.iter().find(archive).map_or(0, |io| io.writes);
        let transactions = outcome.transactions;
        (transactions as f64 / writes as f64, transactions)
    };
    shared.scripts = vec![script(false)];
    let (each, alone) = syncs(&shared);
    close(each, 1.0, 0.02);
    shared.scripts = vec![script(true)];
    let (each, together) = syncs(&shared);
    assert!((4.0..10.1).contains(&each), "{each} transactions a sync");
    assert!(together > 3 * alone, "{together} against {alone}");
}

#[test]
fn what_comes_while_the_leader_writes_waits_for_the_next_flush() {
    // Two clients on two cores: while one writes for a millisecond, the other does all of its own work and commits.
    let mut work = work(2, &update(200), Grouping::LeaderFollower);
    if let Some(log) = &mut work.log {
        log.leader_cpu_ns = 1_000_000;
    }
    let outcome = answer(&work, &all_on(memory(10.0), 10 * SECOND, 1));
    assert!(
        outcome.commits_per_flush < 1.01,
        "{}",
        outcome.commits_per_flush
    );
}

#[test]
fn without_grouping_each_commit_waits_for_its_own_write() {
    let work = |grouping| work(10, &update(200), grouping);
    let disk = || all_on(shipped("hdd-7k2"), 10 * SECOND, 1);
    let alone = rate(&work(Grouping::Alone), &disk());
    let grouped = rate(&work(Grouping::LeaderFollower), &disk());
    assert!(grouped > 2.0 * alone, "{grouped} {alone}");
    for other in [Grouping::Relay, Grouping::WriteGroup] {
        close(rate(&work(other), &disk()), grouped, 0.25);
    }
}

#[test]
fn a_processor_bound_run_is_bound_by_cores() {
    let work = work(10, &update(200), Grouping::LeaderFollower);
    let mut scenario = all_on(memory(0.0), 2 * SECOND, 1);
    let two = answer(&work, &scenario);
    assert!(two.busy_share > 0.99);
    scenario.cores = 4;
    let four = answer(&work, &scenario);
    close(
        four.transactions as f64 / two.transactions as f64,
        2.0,
        0.05,
    );
    scenario.cores = 2;
    scenario.cpu_speed = 2.0;
    let faster = answer(&work, &scenario);
    close(
        faster.transactions as f64 / two.transactions as f64,
        2.0,
        0.1,
    );
}

#[test]
fn a_lock_with_one_key_lets_one_commit_at_a_time() {
    let steps = [&[Step::Lock { lock: 0 }][..], &update(200)].concat();
    let mut work = work(10, &steps, Grouping::LeaderFollower);
    work.locks = vec![hot_lock(1)];
    let disk = all_on(memory(8000.0), 20 * SECOND, 1);
    close(rate(&work, &disk), 1000.0 / 8.2, 0.03);
    work.locks = vec![hot_lock(1_000_000)];
    assert!(rate(&work, &disk) > 400.0);
}

#[test]
fn more_clients_commit_more_as_long_as_the_log_is_what_they_wait_for() {
    let work = work(10, &update(20), Grouping::LeaderFollower);
    let mut scenario = all_on(memory(4000.0), 10 * SECOND, 1);
    let rates = [5, 10, 20, 40].map(|clients| {
        scenario.clients = Some(clients);
        rate(&work, &scenario)
    });
    assert!(
        rates.windows(2).all(|pair| pair[1] > 1.8 * pair[0]),
        "{rates:?}"
    );
}

/// Commits a second of customers that think, then commit to a log that is flushed for all that wait when a flush begins.
///
/// Assumptions: think times are exponential, a flush takes the same time each, nothing else takes time. Of `n` customers
/// `j` take part in a flush; each of the others comes during it with probability `p = 1 - exp(-flush / think)`. Those
/// make up the next flush; if nobody came, the first to come flushes alone. So `j` is a Markov chain.
fn group_commit_rate(customers: usize, think_s: f64, flush_s: f64) -> f64 {
    let p = 1.0 - (-flush_s / think_s).exp();
    let arrive = |others: usize, count: usize| {
        let choices = (0..count).map(|at| (others - at) as f64 / (at + 1) as f64);
        choices.product::<f64>() * p.powi(count as i32) * (1.0 - p).powi((others - count) as i32)
    };
    let mut shares = vec![1.0 / customers as f64; customers + 1];
    for _ in 0..1_000 {
        let mut next = vec![0.0; customers + 1];
        for (members, share) in shares.iter().enumerate().skip(1) {
            for count in 0..=customers - members {
                next[count.max(1)] += share * arrive(customers - members, count);
            }
        }
        shares = next;
    }
    let flushes = shares.iter().enumerate().skip(1);
    let (commits, time_s) = flushes.fold((0.0, 0.0), |sum, (members, share)| {
        let alone = arrive(customers - members, 0) * think_s / customers as f64;
        (
            sum.0 + share * members as f64,
            sum.1 + share * (flush_s + alone),
        )
    });
    commits / time_s
}

#[test]
fn group_commit_gives_the_rate_of_its_markov_chain() {
    const TURNS: u32 = 20_000;
    for (customers, think_us, flush_us) in [(4, 1_000.0, 500.0), (16, 3_000.0, 400.0)] {
        let mut made = work(customers, &[cpu(1)], Grouping::LeaderFollower);
        for (number, session) in (0..).zip(&mut made.sessions) {
            let thinks = exponential(think_us * 1e3, TURNS, number);
            let steps = thinks.into_iter().flat_map(|time_ns| {
                let timer = false;
                let think = Step::Delay(Delay { time_ns, timer });
                [think, Step::Append { size_bytes: 8 }, Step::Commit]
            });
            session.steps = steps.collect();
            session.turns = session_of("", TURNS, &session.steps[..3]).turns;
        }
        if let Some(log) = &mut made.log {
            (log.leader_cpu_ns, log.release_cpu_ns) = (0, 0);
            log.wake_ns = 0;
        }
        let mut scenario = all_on(memory(flush_us), 40 * SECOND, 1);
        scenario.cores = customers;
        let exact = group_commit_rate(customers as usize, think_us * 1e-6, flush_us * 1e-6);
        close(rate(&made, &scenario), exact, 0.01);
    }
}
