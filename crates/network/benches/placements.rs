//! How long one placement takes: ten clients for a second, and 32 for as many transactions as a ranking counts, that
//! commit, on each kind of device. Devices are built anew for each, as they are there.
//!
//! The bar of `tierwise predict --devices`: 4,096 placements in 5 s on two cores, so 2.4 ms for each with the time of
//! work that is counted there.

#[expect(dead_code, reason = "the tests use the rest of it")]
#[path = "../tests/network/support.rs"]
mod support;

use criterion::{Criterion, criterion_group, criterion_main};
use support::{SECOND, all_on, shipped, update, work};
use tierwise_device::ProfileLibrary;
use tierwise_network::{Program, Scenario, replay_all};
use tierwise_work::CommitGrouping;

const DEVICES: [&str; 6] = [
    "hdd-7k2",
    "ssd-sata-dc",
    "ssd-nvme-dc",
    "ssd-nvme-consumer",
    "volume-aws-gp3",
    "zero",
];
/// What `tierwise predict --devices` counts of each placement.
const RANKED: u64 = 400;

fn placements(criterion: &mut Criterion) {
    on_each(criterion, "one second of ten clients", 10, SECOND, None);
    let name = "400 transactions of 32 clients";
    on_each(criterion, name, 32, 5 * SECOND, Some(RANKED));
}

fn on_each(criterion: &mut Criterion, name: &str, clients: u32, span: u64, enough: Option<u64>) {
    let work = work(clients, &update(200), CommitGrouping::LeaderFollower);
    let program = Program::new(work, &ProfileLibrary::default()).expect("work that can be run");
    let mut group = criterion.benchmark_group(name);
    for device in DEVICES {
        let scenario = [Scenario {
            enough,
            ..all_on(shipped(device), span, 1)
        }];
        group.bench_function(device, |bencher| {
            bencher.iter(|| replay_all(&program, &scenario, 1, &false.into()));
        });
    }
    group.finish();
}

criterion_group!(benches, placements);
criterion_main!(benches);
