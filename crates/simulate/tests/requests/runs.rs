//! Figures of runs on a device whose times are known: each can be worked out by hand.

use std::fs;
use std::io::Write;
use std::sync::atomic::AtomicBool;

use flate2::Compression;
use flate2::write::GzEncoder;
use tierwise_device::Nanos;
use tierwise_simulate::{SimulationJob, SimulationReport};

use crate::{drives, file, memory, new_path};

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-9 * expected.abs()
}

fn of_file(content: &str, job: SimulationJob) -> SimulationReport {
    let requests = Some(file(content.as_bytes()));
    SimulationJob { requests, ..job }
        .run(&memory(), &AtomicBool::new(false))
        .expect("a valid file")
}

fn of_preset(name: &str, job: SimulationJob) -> SimulationReport {
    let preset = Some(name.to_owned());
    SimulationJob { preset, ..job }
        .run(&memory(), &AtomicBool::new(false))
        .expect("a valid preset")
}

#[test]
fn one_client_waits_for_each_request_and_then_thinks() {
    let report = of_file(
        "op,lbn,sectors,think_ms\nR,0,8,1\nW,8,8,0\nF,0,0,0\n",
        SimulationJob::default(),
    );
    // 100 µs, a pause of 1 ms, 50 µs, 500 µs.
    assert!(close(report.virtual_s, 1_650e-6), "{}", report.virtual_s);
    assert!(close(report.latency.mean_us, 650.0 / 3.0));
    assert!(close(report.busy_share, 650.0 / 1_650.0));
    assert!(close(report.iops, 2.0 / 1_650e-6));
    assert!(close(report.mb_per_s, 2.0 * 4096.0 / 1_650.0));
    assert_eq!(report.latency.count, 3);
    assert!(close(report.ops["flush"].latency.mean_us, 500.0));
    assert!(!report.ops.contains_key("discard"));
}

#[test]
fn clients_at_a_time_share_the_requests() {
    let job = SimulationJob {
        depth: Some(4),
        count: Some(1_000),
        ..SimulationJob::default()
    };
    let report = of_preset("randread-4k", job);
    assert!(
        close(report.virtual_s, 250.0 * 100e-6),
        "{}",
        report.virtual_s
    );
    assert!(close(report.iops, 40_000.0) && close(report.busy_share, 1.0));
}

#[test]
fn a_pattern_brings_its_own_depth() {
    let report = of_preset(
        "randwrite-4k-qd2",
        SimulationJob {
            count: Some(1_000),
            ..SimulationJob::default()
        },
    );
    assert!(close(report.iops, 2.0 / 50e-6));
}

#[test]
fn a_pattern_stops_at_its_time() {
    let report = of_preset(
        "randread-4k",
        SimulationJob {
            virtual_s: Some(0.01),
            ..SimulationJob::default()
        },
    );
    assert_eq!(report.latency.count, 100);
    assert!(close(report.virtual_s, 0.01));
}

#[test]
fn an_open_loop_follows_the_times_of_arrival() {
    let content = "op,lbn,sectors,arrival_us\nR,0,8,1000\nR,0,8,1010\nR,0,8,2000\n";
    let report = of_file(
        content,
        SimulationJob {
            open: true,
            ..SimulationJob::default()
        },
    );
    assert!(close(report.latency.mean_us, 100.0));
    assert!(close(report.virtual_s, 1_100e-6), "from the first arrival");
    assert!(close(report.busy_share, 210.0 / 1_100.0));
}

#[test]
fn a_closed_loop_ignores_the_times_of_arrival() {
    let report = of_file(
        "op,lbn,sectors,arrival_us\nR,0,8,5\nR,0,8,900\n",
        SimulationJob::default(),
    );
    assert!(close(report.virtual_s, 200e-6));
}

#[test]
fn columns_come_in_any_order_and_a_flush_needs_no_place() {
    let report = of_file(
        "sectors, lbn, op\r\n8, 0, W\r\n\r\n,,F\r\n8,8,D",
        SimulationJob::default(),
    );
    assert_eq!(report.latency.count, 3);
}

#[test]
fn a_compressed_file_is_read_too() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder
        .write_all(b"op,lbn,sectors\nR,0,8\n")
        .expect("memory");
    let requests = Some(file(&encoder.finish().expect("memory")));
    let report = SimulationJob {
        requests,
        ..SimulationJob::default()
    }
    .run(&memory(), &AtomicBool::new(false))
    .expect("a valid file");
    assert_eq!(report.latency.count, 1);
}

#[test]
fn the_file_of_times_is_in_the_order_of_requests_and_is_read_again() {
    let times = new_path();
    let content = "op,lbn,sectors\nR,0,8\nW,8,8\nF,0,0\nR,16,8\n";
    let job = SimulationJob {
        depth: Some(2),
        times: Some(times.clone()),
        ..SimulationJob::default()
    };
    of_file(content, job);
    let text = std::fs::read_to_string(&times).expect("the file of times");
    let expected = "op,lbn,sectors,arrival_us,service_us\n\
        R,0,8,0.000,100.000\nW,8,8,0.000,50.000\nF,0,0,50.000,500.000\nR,16,8,100.000,100.000\n";
    assert_eq!(text, expected);
    let again = of_file(
        &text,
        SimulationJob {
            depth: Some(2),
            ..SimulationJob::default()
        },
    );
    let compared = again.compared.expect("times to compare");
    assert_eq!((compared.demerit, compared.each), (0.0, 0.0));
}

#[test]
fn measured_times_are_compared() {
    let report = of_file(
        "op,lbn,sectors,service_us\nR,0,8,110\nR,0,8,90\n",
        SimulationJob::default(),
    );
    let compared = report.compared.expect("times to compare");
    assert!(close(compared.measured_mean_us, 100.0) && close(compared.model_mean_us, 100.0));
    assert!(close(compared.demerit, 0.1) && close(compared.each, 0.1));
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let figures = |seed| {
        let report = of_preset(
            "mixed50-4k-qd3",
            SimulationJob {
                seed,
                count: Some(100),
                ..SimulationJob::default()
            },
        );
        (report.virtual_s, report.ops["read"].latency.count)
    };
    assert_eq!(figures(1), figures(1));
    assert_ne!(figures(1), figures(2));
}

// A simulation of the measured drives' requests gives the very times that the device's own replay gives.

fn services_ns(csv: &str) -> Vec<Nanos> {
    let service = |line: &str| {
        let us: f64 = line
            .rsplit(',')
            .next()
            .and_then(|us| us.parse().ok())
            .expect("a time");
        (us * 1e3).round() as Nanos
    };
    csv.lines().skip(1).map(service).collect()
}

#[test]
fn measured_drives_give_the_same_times_as_their_replay() {
    let Some(folder) = drives::golden_folder() else {
        println!("skipped: no measured drives in ../shared/golden/hdd");
        return;
    };
    for drive in fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
    {
        if !drive.is_dir() {
            continue;
        }
        let times = new_path();
        let job = SimulationJob {
            requests: Some(drive.join("requests.csv.gz")),
            times: Some(times.clone()),
            ..SimulationJob::default()
        };
        let profile = drives::import(&drive);
        let compared = job
            .run(&profile, &AtomicBool::new(false))
            .expect("measured requests")
            .compared
            .expect("measured times");
        let requests = drives::requests(&drive);
        let replayed = drives::replay(&profile, &requests);
        assert_eq!(
            services_ns(&fs::read_to_string(times).expect("times")),
            replayed
        );
        let real: Vec<Nanos> = requests
            .iter()
            .map(|measured| measured.service_ns)
            .collect();
        assert_eq!(compared.measured_mean_us, drives::mean(&real) / 1e3);
        assert_eq!(compared.demerit, drives::demerit(&real, &replayed));
        assert_eq!(compared.each, drives::per_request(&real, &replayed));
    }
}
