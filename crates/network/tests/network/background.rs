//! What no client waits for, and what it costs them.

use tierwise_network::{Outcome, ReplayMode, Scenario, replay};
use tierwise_recording::{Role, ThreadClass};
use tierwise_work::constants::REQUEST_CPU_NS;
use tierwise_work::{
    CommitGrouping, Delay, EmulatedPath, Session, Step, SyncRequests, TurnPace, Work,
};

use crate::support::{
    MS, SECOND, all_on, cpu, memory, memory_text, session, shipped, update, work,
};

fn answer(work: &Work, scenario: &Scenario) -> Outcome {
    replay(work, scenario).expect("a scenario that can be")
}

fn written(outcome: &Outcome, role: Role) -> u64 {
    let found = outcome.io.iter().find(|io| io.role == role);
    found.map_or(0, |io| io.written_bytes)
}

/// Clients that commit, and a checkpoint a second that writes 4 MiB at random and syncs.
fn with_checkpoints() -> Work {
    let mut work = work(4, &update(200), CommitGrouping::LeaderFollower);
    let page = |index: u64| Step::Write {
        role: Role::Data,
        sector: index * 7919 % 100_000 * 16,
        sectors: 16,
    };
    let mut steps: Vec<Step> = (0..512).map(page).collect();
    steps.push(Step::Sync {
        role: Role::Data,
        script: 0,
    });
    work.scripts = vec![SyncRequests {
        writes: vec![(0, 16), (1 << 23, 16)],
        flushes: 1,
        journal_writes: vec![],
        by_caller: false,
        shared: false,
        range: (0, 0),
    }];
    let checkpointer = session("checkpointer", 1, &steps);
    work.sessions.push(Session {
        class: ThreadClass::Background,
        pace: TurnPace::Time,
        starts: vec![0],
        ..checkpointer
    });
    work.observed.span_ns = SECOND;
    work
}

#[test]
fn checkpoints_disturb_the_log_only_where_they_share_its_device() {
    let work = with_checkpoints();
    let together = all_on(shipped("hdd-7k2"), 10 * SECOND, 1);
    let mut apart = together.clone();
    apart.devices.push(Some(shipped("hdd-7k2")));
    apart.placement.retain(|placed| placed.0 != Role::Data);
    apart.placement.push((Role::Data, 2));
    let [together, apart] = [together, apart].map(|scenario| answer(&work, &scenario));
    assert!(apart.transactions as f64 > 1.5 * together.transactions as f64);
    // Two thirds of the pages were written since the last checkpoint: the first 512 of each second.
    assert!(
        written(&apart, Role::Data) > 9 * 512 * 16 * 512 / 2,
        "{}",
        written(&apart, Role::Data)
    );
}

#[test]
fn what_is_written_and_never_synced_reaches_the_device_after_half_a_minute() {
    let steps = [
        cpu(1000),
        Step::Write {
            role: Role::Temp,
            sector: 0,
            sectors: 2048,
        },
    ];
    let work = work(1, &steps, CommitGrouping::Alone);
    let short = answer(&work, &all_on(memory(10.0), 10 * SECOND, 1));
    assert_eq!(written(&short, Role::Temp), 0);
    let long = answer(&work, &all_on(memory(10.0), 60 * SECOND, 1));
    assert!(written(&long, Role::Temp) >= 1 << 20);
}

#[test]
fn writers_wait_for_the_device_when_memory_is_full_of_dirty_pages() {
    let steps: Vec<Step> = (0..256)
        .flat_map(|index| {
            [
                cpu(100),
                Step::Write {
                    role: Role::Data,
                    sector: index * 2048,
                    sectors: 2048,
                },
            ]
        })
        .collect();
    let mut work = work(1, &steps, CommitGrouping::Alone);
    work.memory_bytes = 512 << 20;
    let slow = answer(&work, &all_on(shipped("hdd-7k2"), 20 * SECOND, 1));
    let rate = written(&slow, Role::Data) as f64 / slow.elapsed_s / 1e6;
    assert!((60.0..160.0).contains(&rate), "{rate} MB/s");
    let dirtied = slow.turns as f64 * 256.0 * 1.048_576 / slow.elapsed_s;
    assert!(dirtied < 1.7 * rate, "{dirtied} MB/s");
}

#[test]
fn forgotten_pages_are_never_written() {
    let file = (Role::Temp, 0, 4096);
    let steps = [
        cpu(1000),
        Step::Write {
            role: file.0,
            sector: file.1,
            sectors: file.2,
        },
        Step::Forget {
            role: file.0,
            sector: file.1,
            sectors: file.2,
        },
    ];
    let work = work(1, &steps, CommitGrouping::Alone);
    let outcome = answer(&work, &all_on(memory(10.0), 60 * SECOND, 1));
    assert_eq!(written(&outcome, Role::Temp), 0);
}

/// The sender's own part of a measured path.
fn request_us() -> f64 {
    REQUEST_CPU_NS.get() as f64 / 1e3
}

#[test]
fn no_answer_comes_sooner_than_the_path_to_a_live_disk() {
    let steps = [Step::Read {
        role: Role::Data,
        sector: 0,
        sectors: 8,
    }];
    let mut work = work(1, &steps, CommitGrouping::Alone);
    work.devices[0].path = Some(EmulatedPath {
        latency_ns: 40_000,
        added_ns: Vec::new(),
    });
    let mut scenario = all_on(memory(2.0), 10 * MS, 1);
    let read_us = |scenario: &Scenario| {
        let outcome = answer(&work, scenario);
        outcome.elapsed_s * 1e6 / outcome.turns as f64
    };
    assert!((read_us(&scenario) - 2.0).abs() < 0.1);
    scenario.emulated = true;
    assert!((read_us(&scenario) - (40.0 - request_us())).abs() < 0.1);
}

#[test]
fn a_disk_like_one_that_was_up_has_its_path() {
    let steps = [Step::Read {
        role: Role::Data,
        sector: 0,
        sectors: 8,
    }];
    let path = |latency_ns: u64| EmulatedPath {
        latency_ns,
        added_ns: Vec::new(),
    };
    let mut work = work(1, &steps, CommitGrouping::Alone);
    work.devices[0].path = Some(path(90_000));
    work.paths = vec![(memory_text(2.0), path(30_000))];
    let read_us = |latency_us: f64| {
        let mut scenario = all_on(memory(latency_us), 100 * MS, 1);
        scenario.emulated = true;
        let outcome = answer(&work, &scenario);
        outcome.elapsed_s * 1e6 / outcome.turns as f64
    };
    assert!((read_us(2.0) - (30.0 - request_us())).abs() < 0.1);
    assert!(
        (read_us(3.0) - (90.0 - request_us())).abs() < 0.1,
        "the longest that is known"
    );
}

#[test]
fn a_path_takes_longer_with_more_requests_outstanding() {
    let read = Step::Read {
        role: Role::Data,
        sector: 0,
        sectors: 8,
    };
    let sender = Step::Delay(Delay {
        time_ns: REQUEST_CPU_NS.get(),
        timer: false,
    });
    let steps = [read, sender];
    let rate = |clients: u32, emulated: bool| {
        let mut work = work(clients, &steps, CommitGrouping::Alone);
        work.devices[0].path = Some(EmulatedPath {
            latency_ns: 20_000,
            added_ns: vec![(1, 0), (3, 60_000)],
        });
        let mut scenario = all_on(memory(100.0), 100 * MS, 1);
        scenario.emulated = emulated;
        let outcome = answer(&work, &scenario);
        outcome.turns as f64 / outcome.elapsed_s
    };
    for (clients, time_us) in [(1, 100.0), (2, 130.0), (3, 160.0), (4, 160.0)] {
        let expected = f64::from(clients) * 1e6 / time_us;
        let live = rate(clients, true);
        assert!(
            (live / expected - 1.0).abs() < 0.02,
            "{clients}: {live} for {expected}"
        );
        let real = rate(clients, false);
        let expected = f64::from(clients) * 1e6 / (100.0 + request_us());
        assert!((real / expected - 1.0).abs() < 0.02, "{clients}: {real}");
    }
}

#[test]
fn other_programs_take_their_part_of_the_cores() {
    let pause = Step::Delay(Delay {
        time_ns: 1000,
        timer: false,
    });
    let mut work = work(10, &[cpu(200), pause], CommitGrouping::Alone);
    let scenario = all_on(memory(0.0), 4 * SECOND, 1);
    let alone = answer(&work, &scenario);
    work.foreign_cpu_share = 0.6;
    let shared = answer(&work, &scenario);
    let part = shared.transactions as f64 / alone.transactions as f64;
    assert!((part - 0.4).abs() < 0.06, "{part}");
}

// Dirty pages, streams of reads, and where roles lie that were moved.

const MEBIBYTE: u32 = 2048;

fn once(work: &Work, profile: tierwise_device::Profile) -> Outcome {
    let scenario = Scenario {
        mode: ReplayMode::Once,
        ..all_on(profile, SECOND, 1)
    };
    replay(work, &scenario).expect("a scenario that can be")
}

fn all_written(outcome: &Outcome) -> u64 {
    outcome.io.iter().map(|io| io.written_bytes).sum()
}

fn write(sector: u64, sectors: u32) -> Step {
    Step::Write {
        role: Role::Data,
        sector,
        sectors,
    }
}

/// One session that does this once.
fn once_work(steps: &[Step]) -> Work {
    let mut work = work(1, steps, CommitGrouping::Alone);
    work.sessions[0].turns.truncate(1);
    work
}

#[test]
fn pages_given_back_are_written_and_a_sync_waits_for_them() {
    let give = Step::WriteBack {
        role: Role::Data,
        sector: 0,
        sectors: MEBIBYTE,
    };
    let sync = Step::Sync {
        role: Role::Data,
        script: 0,
    };
    let mut work = once_work(&[write(0, MEBIBYTE), give, cpu(10), sync]);
    work.scripts = vec![SyncRequests::default()];
    let outcome = once(&work, memory(5000.0));
    assert_eq!(all_written(&outcome), 1 << 20);
    assert!(
        (0.005..0.006).contains(&outcome.elapsed_s),
        "{}",
        outcome.elapsed_s
    );
}

#[test]
fn a_sync_writes_its_own_file_and_no_other() {
    let sync = Step::Sync {
        role: Role::Data,
        script: 0,
    };
    let mut work = once_work(&[write(0, 64), write(4096, 64), sync]);
    work.scripts = vec![SyncRequests {
        writes: vec![(8192, 8)],
        range: (4096, 8192),
        ..SyncRequests::default()
    }];
    assert_eq!(all_written(&once(&work, memory(10.0))), (64 + 8) * 512);
}

#[test]
fn a_group_may_fill_its_memory_where_it_was_seen_to() {
    let steps: Vec<Step> = (0..40)
        .flat_map(|index| [cpu(1000), write(index * u64::from(MEBIBYTE), MEBIBYTE)])
        .collect();
    let mut work = once_work(&steps);
    work.memory_bytes = 96 << 20;
    let limited = once(&work, shipped("hdd-7k2"));
    work.most_dirty_bytes = 64 << 20;
    let free = once(&work, shipped("hdd-7k2"));
    assert!(all_written(&limited) > 10 << 20);
    assert_eq!(all_written(&free), 0);
    assert!(limited.elapsed_s > free.elapsed_s);
}
