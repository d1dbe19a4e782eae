//! Commits on devices whose times are known: what follows from physics, and what was measured of real ones.

use tierwise_network::{Outcome, ReplayMode, RoleIo, Scenario, replay};
use tierwise_recording::{Role, ThreadClass};
use tierwise_work::{
    CommitDelay, CommitGrouping, Delay, Session, Step, SyncRequests, TimeCategory, Turn, Work,
};

use crate::support::{
    MS, SECOND, all_on, close, cpu, exponential, hot_lock, memory, session, session as session_of,
    shipped, update, work, writers,
};

fn rate(work: &Work, scenario: &Scenario) -> f64 {
    let outcome = answer(work, scenario);
    outcome.transactions as f64 / outcome.elapsed_s
}

fn answer(work: &Work, scenario: &Scenario) -> Outcome {
    replay(work, scenario).expect("a scenario that can be")
}

#[test]
fn one_client_commits_once_a_revolution() {
    let work = work(1, &update(200), CommitGrouping::LeaderFollower);
    close(
        rate(&work, &all_on(shipped("hdd-7k2"), 20 * SECOND, 1)),
        120.0,
        0.02,
    );
}

#[test]
fn an_emulated_disk_without_a_volatile_cache_is_sent_no_flush() {
    let work = work(1, &update(200), CommitGrouping::Alone);
    let flushes = |profile: &str, emulated: bool, emulated_flushes: bool| {
        let scenario = Scenario {
            emulated,
            emulated_flushes,
            ..all_on(shipped(profile), SECOND, 1)
        };
        let outcome = answer(&work, &scenario);
        let log = outcome.io.iter().find(|io| io.role == Role::Log);
        log.expect("commits write the log").flushes
    };
    assert_eq!(flushes("ssd-nvme-dc", false, false), 0);
    assert_eq!(flushes("ssd-nvme-dc", true, false), 0);
    assert!(flushes("ssd-nvme-dc", true, true) > 0);
    assert!(flushes("hdd-7k2-sata-2009", true, false) > 0);
}

#[test]
fn ten_clients_share_flushes() {
    // Ten clients at an 8 ms flush: who commits meanwhile takes part in the next, so that half of them, and those
    // who arrive while it is on its way, are in each; 4.6 were measured.
    let work = work(10, &update(209), CommitGrouping::LeaderFollower);
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
    let mut shared = work(10, &[cpu(200), sync], CommitGrouping::Alone);
    shared.log = None;
    let place = (Role::Archive, 1 << 26, 1 << 22);
    shared.devices[0].roles.push(place);
    shared.footprints.push((place.0, place.2));
    let script = |shared| SyncRequests {
        writes: vec![(0, 8)],
        flushes: 1,
        shared,
        ..SyncRequests::default()
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
    let mut work = work(2, &update(200), CommitGrouping::LeaderFollower);
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
    let alone = rate(&work(CommitGrouping::Alone), &disk());
    let grouped = rate(&work(CommitGrouping::LeaderFollower), &disk());
    assert!(grouped > 2.0 * alone, "{grouped} {alone}");
    for other in [CommitGrouping::Relay, CommitGrouping::WriteGroup] {
        close(rate(&work(other), &disk()), grouped, 0.25);
    }
}

#[test]
fn a_processor_bound_run_is_bound_by_cores() {
    let work = work(10, &update(200), CommitGrouping::LeaderFollower);
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
    let mut work = work(10, &steps, CommitGrouping::LeaderFollower);
    work.locks = vec![hot_lock(1)];
    let disk = all_on(memory(8000.0), 20 * SECOND, 1);
    close(rate(&work, &disk), 1000.0 / 8.2, 0.03);
    work.locks = vec![hot_lock(1_000_000)];
    assert!(rate(&work, &disk) > 400.0);
}

#[test]
fn more_clients_commit_more_as_long_as_the_log_is_what_they_wait_for() {
    let work = work(10, &update(20), CommitGrouping::LeaderFollower);
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
        let mut made = work(customers, &[cpu(1)], CommitGrouping::LeaderFollower);
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

// Commits that wait for a second copy of the log.

/// Clients that commit, and one who copies their log: each flush of the copy is one write.
fn copied(clients: u32, waited_for: bool) -> Work {
    let mut work = work(clients, &update(200), CommitGrouping::LeaderFollower);
    work.scripts = vec![SyncRequests {
        writes: vec![(1 << 20, 16)],
        flushes: 1,
        journal_writes: Vec::new(),
        by_caller: false,
        shared: false,
        ..SyncRequests::default()
    }];
    let sync = Step::Sync {
        role: Role::Log,
        script: 0,
    };
    let mut steps = vec![Step::AwaitLog, cpu(20), sync, cpu(20)];
    steps.extend(waited_for.then_some(Step::Acknowledge));
    let copier = session("copier", 3, &steps);
    let silent = |turn: &Turn| Turn {
        ends: false,
        ..*turn
    };
    work.sessions.push(Session {
        class: ThreadClass::LogWriter,
        turns: copier.turns.iter().map(silent).collect(),
        ..copier
    });
    work
}

fn replica_rate(work: &Work) -> f64 {
    let outcome = answer(work, &all_on(memory(4000.0), 20 * SECOND, 1));
    outcome.transactions as f64 / outcome.elapsed_s
}

#[test]
fn one_client_waits_for_both_one_after_the_other() {
    // 0.21 ms of its own, 4 ms of the log, 0.02 ms and 4 ms of the copy, 0.02 ms until it answers.
    let both = replica_rate(&copied(1, true));
    assert!((both / (1000.0 / 8.27) - 1.0).abs() < 0.01, "{both}");
    let unwaited = replica_rate(&copied(1, false));
    let none = replica_rate(&work(1, &update(200), CommitGrouping::LeaderFollower));
    assert!((unwaited / none - 1.0).abs() < 0.02, "{unwaited} {none}");
}

#[test]
fn many_clients_share_flushes_of_the_copy_too() {
    let (both, none) = (
        replica_rate(&copied(20, true)),
        replica_rate(&copied(20, false)),
    );
    assert!(both > 6.0 * replica_rate(&copied(1, true)), "{both}");
    assert!(both < 0.9 * none, "{both} {none}");
}

#[test]
fn the_copy_goes_on_as_long_as_there_are_clients() {
    // More commits than recorded cycles of the copy.
    let scenario = Scenario {
        mode: ReplayMode::Once,
        ..all_on(memory(100.0), MS, 1)
    };
    assert_eq!(answer(&copied(2, true), &scenario).transactions, 100);
}

// An engine that lets one session at a time write; the others sleep and ask again.

fn writer_rate(work: &Work, latency_us: f64) -> f64 {
    let outcome = replay(work, &all_on(memory(latency_us), 20 * SECOND, 1));
    let outcome = outcome.expect("a scenario that can be");
    outcome.transactions as f64 / outcome.elapsed_s
}

#[test]
fn one_writes_at_a_time_whatever_the_number_of_clients() {
    // 0.4 ms on a core, 0.01 ms to lead, a write of 4 ms: no more than one in 4.4 ms.
    for clients in [1, 4, 16] {
        let writer_rate = writer_rate(&writers(clients, vec![MS, 2 * MS, 5 * MS]), 4000.0);
        assert!(writer_rate < 1000.0 / 4.41, "{clients}: {writer_rate}");
        assert!(writer_rate > 1000.0 / 6.0, "{clients}: {writer_rate}");
    }
}

#[test]
fn sleepers_leave_the_database_to_who_has_just_written() {
    // Who sleeps for so long that it never comes in time costs no more than the time in which nobody writes.
    let alone = writer_rate(&writers(1, Vec::new()), 4000.0);
    let rarely = writer_rate(&writers(4, vec![1000 * MS]), 4000.0);
    assert!((rarely / alone - 1.0).abs() < 0.05, "{rarely} {alone}");
}

// A leader that waits for more commits before its flush: that wait is no device's.

const DELAY_MS: f64 = 20.0;

/// Eight clients on a device without latency, whose leader waits if at least so many others commit too.
fn outcome(siblings: u32) -> Outcome {
    outcome_on(siblings, 10.0)
}

fn outcome_on(siblings: u32, latency_us: f64) -> Outcome {
    let mut work = work(8, &update(200), CommitGrouping::LeaderFollower);
    if let Some(log) = &mut work.log {
        log.commit_delay = Some(CommitDelay {
            time_ns: (DELAY_MS * 1e6) as u32,
            siblings,
            from_settings: true,
        });
    }
    replay(&work, &all_on(memory(latency_us), 20 * SECOND, 1)).expect("a scenario that can be")
}

fn delayed_rate(outcome: &Outcome) -> f64 {
    outcome.transactions as f64 / outcome.elapsed_s
}

#[test]
fn the_wait_stays_on_the_fastest_device() {
    // All eight commit in each wait; a few flushes find fewer than five others in a transaction.
    let all = 8.0 / (DELAY_MS / 1e3);
    let found = outcome(5);
    assert!(
        (0.8..1.15).contains(&(delayed_rate(&found) / all)),
        "{}",
        delayed_rate(&found)
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
        (0.9..1.1).contains(&(delayed_rate(&found) / both)),
        "{}",
        delayed_rate(&found)
    );
}

#[test]
fn nobody_waits_where_too_few_others_commit() {
    assert!(
        delayed_rate(&outcome(8)) > 5_000.0,
        "seven others are fewer than eight"
    );
    assert!(delayed_rate(&outcome(0)) <= 8.0 / (DELAY_MS / 1e3));
}
