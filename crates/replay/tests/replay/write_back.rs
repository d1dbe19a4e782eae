//! Dirty pages, streams of reads, and where roles lie that were moved.

use tierwise_recording::Role;
use tierwise_replay::{Mode, Outcome, Scenario, replay};
use tierwise_work::{Grouping, Partition, Step, SyncScript, Work};

use crate::support::{SECOND, all_on, cpu, memory, shipped, work};

const MEBIBYTE: u32 = 2048;

fn once(work: &Work, profile: tierwise_device::Profile) -> Outcome {
    let scenario = Scenario {
        mode: Mode::Once,
        ..all_on(profile, SECOND, 1)
    };
    replay(work, &scenario).expect("a scenario that can be")
}

fn written(outcome: &Outcome) -> u64 {
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
    let mut work = work(1, steps, Grouping::Alone);
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
    work.scripts = vec![SyncScript::default()];
    let outcome = once(&work, memory(5000.0));
    assert_eq!(written(&outcome), 1 << 20);
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
    work.scripts = vec![SyncScript {
        writes: vec![(8192, 8)],
        range: (4096, 8192),
        ..SyncScript::default()
    }];
    assert_eq!(written(&once(&work, memory(10.0))), (64 + 8) * 512);
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
    assert!(written(&limited) > 10 << 20);
    assert_eq!(written(&free), 0);
    assert!(limited.elapsed_s > free.elapsed_s);
}

#[test]
fn roles_that_move_take_their_partitions_with_them() {
    let read = |role, sector| Step::Read {
        role,
        sector,
        sectors: 8,
    };
    let steps: Vec<Step> = (0..200)
        .flat_map(|index| [read(Role::Data, index * 64), read(Role::Temp, index * 64)])
        .collect();
    let mut work = once_work(&steps);
    let near = once(&work, shipped("hdd-7k2")).elapsed_s;
    let partition = |role, first_sector| Partition {
        role,
        first_sector,
        before: 0,
        sectors: 400 << 21,
    };
    work.partitions = vec![partition(Role::Temp, 0), partition(Role::Data, 400 << 21)];
    let apart = once(&work, shipped("hdd-7k2")).elapsed_s;
    assert!(apart > 1.15 * near, "{apart} {near}");
}

/// A scan of 64 windows of 128 KiB, each sent when the reader comes to the one before.
fn scan() -> Work {
    let window = 256;
    let mut steps = Vec::new();
    for index in 0..64u64 {
        let sector = index * u64::from(window);
        let rest = Step::Stream {
            sectors: (63 - index as u32) * window,
        };
        let (role, sectors) = (Role::Data, window);
        steps.push(rest);
        steps.push(if index == 0 {
            Step::Read {
                role,
                sector,
                sectors,
            }
        } else {
            Step::Submit {
                role,
                sector,
                sectors,
                write: false,
            }
        });
        let sector = sector.saturating_sub(window.into());
        steps.push(Step::CachedRead {
            role,
            sector,
            sectors,
        });
        steps.push(cpu(200));
    }
    let mut work = once_work(&steps);
    work.read_ahead = vec![(Role::Data, window)];
    work.read_ahead_by_device = (window, 4096);
    work
}

#[test]
fn a_disk_is_read_further_ahead_than_memory() {
    let reads = |profile| {
        let outcome = once(&scan(), profile);
        let data = &outcome.io[0];
        (data.reads, data.read_bytes)
    };
    assert_eq!(reads(memory(50.0)), (64, 64 * 131_072));
    let (requests, bytes) = reads(shipped("hdd-7k2"));
    assert_eq!(bytes, 64 * 131_072);
    assert!(requests < 20, "{requests}");
}

#[test]
fn what_was_read_far_ahead_is_read_in_small_parts_elsewhere() {
    let mut work = scan();
    work.read_ahead[0].1 = 4096;
    work.sessions[0].steps[1] = Step::Read {
        role: Role::Data,
        sector: 0,
        sectors: 2048,
    };
    let outcome = once(&work, memory(50.0));
    assert!(outcome.io[0].reads >= 64, "{:?}", outcome.io);
}

#[test]
fn what_one_long_request_brought_is_sent_as_readers_come_to_it() {
    let (role, window) = (Role::Data, 256);
    let reads = |windows: u64| {
        let whole = Step::Read {
            role,
            sector: 0,
            sectors: 8 * window,
        };
        let look = |index| Step::CachedRead {
            role,
            sector: index * u64::from(window),
            sectors: window,
        };
        let looks = (0..windows).flat_map(|index| [look(index), cpu(200)]);
        let steps: Vec<Step> = std::iter::once(whole).chain(looks).collect();
        let mut work = once_work(&steps);
        work.read_ahead = vec![(role, 4096)];
        work.read_ahead_by_device = (window, 4096);
        once(&work, memory(50.0)).io[0].reads
    };
    assert_eq!(reads(8), 8);
    // One more than were read is on its way.
    assert_eq!(reads(2), 3);
}
