//! How long one placement takes: ten clients that commit, on each kind of device.
//!
//! The bar of `tierwise predict --all`: 4,096 placements in 60 s on two cores, so 29 ms for each with the time of
//! work that is counted there.

#[expect(dead_code, reason = "the tests use the rest of it")]
#[path = "../tests/replay/support.rs"]
mod support;

use criterion::{Criterion, criterion_group, criterion_main};
use support::{SECOND, all_on, shipped, update, work};
use tierwise_device::Library;
use tierwise_replay::{Program, replay_all};
use tierwise_work::Grouping;

fn placements(criterion: &mut Criterion) {
    let program = Program::new(
        work(10, &update(200), Grouping::LeaderFollower),
        &Library::default(),
    );
    let program = program.expect("work that can be run");
    let mut group = criterion.benchmark_group("one second of ten clients");
    for name in [
        "hdd-7k2",
        "ssd-sata-dc",
        "ssd-nvme-dc",
        "volume-aws-gp3",
        "zero",
    ] {
        let scenario = [all_on(shipped(name), SECOND, 1)];
        group.bench_function(name, |bencher| {
            bencher.iter(|| replay_all(&program, &scenario, 1, &false.into()));
        });
    }
    group.finish();
}

criterion_group!(benches, placements);
criterion_main!(benches);
