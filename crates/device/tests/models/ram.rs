//! Memory behind a link: each request has its latency, all share the link.

use crate::shipped;
use tierwise_device::{Driver, Op, Request};

fn request(op: Op, sectors: u32) -> Request {
    Request {
        op,
        sector: 0,
        sectors,
        fua: false,
    }
}

fn driver(name: &str) -> Driver<Box<dyn tierwise_device::Device>> {
    Driver::new(shipped::profile(name).build(1))
}

#[test]
fn one_request_takes_latency_and_transfer() {
    let mut driver = driver("ssd-dram-fc");
    // 8 KiB at 200 MB/s take 40.96 us, the latency is 50 us.
    assert_eq!(driver.serve(request(Op::Read, 16)), 90_960);
    assert_eq!(driver.serve(request(Op::Write, 16)), 90_960);
    assert_eq!(driver.serve(request(Op::Flush, 0)), 20_000);
}

#[test]
fn latencies_overlap_and_the_link_is_shared_in_order_of_arrival() {
    let mut driver = driver("ssd-dram-fc");
    for _ in 0..4 {
        driver.submit(request(Op::Read, 16));
    }
    let done: Vec<(u64, u64)> = driver
        .run_until_idle()
        .iter()
        .map(|done| (done.id, done.at))
        .collect();
    let at = |index: u64| 50_000 + (index + 1) * 40_960;
    assert_eq!(done, [(0, at(0)), (1, at(1)), (2, at(2)), (3, at(3))]);
}

#[test]
fn the_device_that_measures_the_path_takes_no_time() {
    let mut driver = driver("zero");
    for op in [Op::Read, Op::Write, Op::Flush, Op::Discard] {
        assert_eq!(driver.serve(request(op, 2048)), 0);
    }
}
