//! Dirty pages, streams of reads, and where roles lie that were moved.

use tierwise_network::{Mode, Outcome, Scenario, replay};
use tierwise_recording::Role;
use tierwise_work::{Grouping, Step, SyncScript, Work};

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
