//! Requests per processor-second of each model, on virtual time.
//!
//! Times are those of the thread on its processor, so that other load on the machine counts little.

#[path = "../tests/models/support.rs"]
mod support;

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tierwise_device::{Completion, Device, Op, Precondition, Request};

const REQUESTS: u64 = 100_000;

/// An SSD starts where long use leaves it.
fn build(name: &str) -> Box<dyn Device> {
    let mut device = support::shipped(name).build(1);
    if name.starts_with("ssd-") {
        device.precondition(Precondition::Random { active_share: 1.0 });
    }
    device
}

/// Random 4 KiB requests, half of them writes unless `op` is given, `depth` outstanding at a time.
struct Load {
    device: Box<dyn Device>,
    completions: Vec<Completion>,
    state: u64,
    now: u64,
    op: Option<Op>,
    depth: u64,
}

impl Load {
    fn new(name: &str, depth: u64, op: Option<Op>) -> Self {
        let mut load = Self {
            device: build(name),
            completions: Vec::with_capacity(1024),
            state: 1,
            now: 0,
            op,
            depth,
        };
        (0..load.depth).for_each(|id| load.submit(id));
        load
    }

    fn submit(&mut self, id: u64) {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let op = self.op.unwrap_or(if self.state & 1 == 0 {
            Op::Read
        } else {
            Op::Write
        });
        let pages = self.device.capacity_sectors() / 8;
        let page = ((u128::from(self.state) * u128::from(pages)) >> 64) as u64;
        self.device
            .submit(self.now, id, Request::new(op, page * 8, 8));
    }

    /// Completes `REQUESTS` requests, submitting the next as each completes.
    fn run(&mut self) {
        let mut done = 0;
        while done < REQUESTS {
            self.now = self.device.next_event().expect("requests are outstanding");
            self.completions.clear();
            self.device.advance(self.now, &mut self.completions);
            done += self.completions.len() as u64;
            for index in 0..self.completions.len() {
                self.submit(self.completions[index].id);
            }
        }
    }
}

/// Time that this thread has run on a processor.
fn processor_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a local value that the call fills in.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(status, 0, "no clock for the time of a thread");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn models(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("requests");
    group
        .throughput(Throughput::Elements(REQUESTS))
        .sample_size(20);
    for (label, profile, depth, op) in [
        (
            "hdd random read, one at a time",
            "hdd-7k2",
            1,
            Some(Op::Read),
        ),
        (
            "hdd random write, one at a time",
            "hdd-7k2",
            1,
            Some(Op::Write),
        ),
        ("hdd random mixed, one at a time", "hdd-7k2", 1, None),
        (
            "hdd random mixed, write cache on",
            "hdd-7k2-sata-2009",
            1,
            None,
        ),
        (
            "hdd random mixed, 32 at a time, nearest first",
            "hdd-7k2",
            32,
            None,
        ),
        (
            "ssd random mixed, worn, 32 at a time",
            "ssd-nvme-dc",
            32,
            None,
        ),
        (
            "ssd random write, worn, 32 at a time",
            "ssd-nvme-dc",
            32,
            Some(Op::Write),
        ),
        (
            "ssd random write, worn, every unit tracked",
            "ssd-sata-slc-2008",
            32,
            Some(Op::Write),
        ),
        ("ram random mixed, one at a time", "ram", 1, None),
        (
            "raid 5 random write, one at a time",
            "array-raid5-7x-hdd-7k2-200g-ata",
            1,
            Some(Op::Write),
        ),
        (
            "raid 5 random write, 32 at a time",
            "array-raid5-7x-hdd-7k2-200g-ata",
            32,
            Some(Op::Write),
        ),
        (
            "raid 5 random write, 32 at a time, controller cache",
            "array-raid5-8x-hdd-10k-sas",
            32,
            Some(Op::Write),
        ),
        (
            "raid 0 of 100 disks random read, 256 at a time",
            "array-raid0-100x-hdd-15k-sas",
            256,
            Some(Op::Read),
        ),
        (
            "volume random mixed, one at a time",
            "volume-aws-gp3",
            1,
            None,
        ),
        (
            "volume random mixed, 32 at a time",
            "volume-aws-gp3",
            32,
            None,
        ),
    ] {
        let mut load = Load::new(profile, depth, op);
        group.bench_function(label, |bencher| {
            bencher.iter_custom(|iterations| {
                let start = processor_time();
                (0..iterations).for_each(|_| load.run());
                processor_time() - start
            })
        });
    }
    group.finish();
}

criterion_group!(benches, models);
criterion_main!(benches);
