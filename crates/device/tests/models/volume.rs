//! What a volume's limits do, on a small one whose every number is round.

use proptest::prelude::*;
use tierwise_device::{Device, Nanos, Op, Profile, Request, VirtualTimeDriver};

use crate::support::*;

const MS: Nanos = 1_000_000;

/// Ten I/Os per second of which one can be saved up; a constant latency of 1 ms.
const PROFILE: &str = r#"
kind = "volume"
summary = "test"
capacity_gib = 1
[latency]
read_p50_us = 1000
read_p99_us = 1000
write_p50_us = 2000
write_p99_us = 2000
flush_us = 30
transfer_mb_per_s = 0
[limits]
window_us = 100_000
io_unit_kib = 256
merge_window_us = 5000
[limits.iops]
most = 10
[limits.mb_per_s]
most = 1000
"#;

fn profile(changes: &[(&str, &str)]) -> Profile {
    let text = changes.iter().fold(PROFILE.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{old}");
        text.replace(old, new)
    });
    Profile::parse(&sourced(&text), "test.toml").expect("a valid profile")
}

fn refusal(changes: &[(&str, &str)]) -> String {
    let text = changes.iter().fold(PROFILE.to_owned(), |text, (old, new)| {
        text.replace(old, new)
    });
    let error = Profile::parse(&sourced(&text), "test.toml").expect_err("the profile is bad");
    format!("{}; {}", error.message, error.fix)
}

/// When each of `requests`, submitted together at time 0, completes, in milliseconds.
fn times_ms(profile: &Profile, requests: &[Request]) -> Vec<f64> {
    let mut driver = VirtualTimeDriver::new(profile.build(1));
    for request in requests {
        driver.submit(*request);
    }
    let mut done = driver.run_until_idle();
    done.sort_by_key(|done| done.id);
    done.iter().map(|done| done.at as f64 / 1e6).collect()
}

fn reads(sectors: u32, step: u64, count: u64) -> Vec<Request> {
    (0..count)
        .map(|index| request(Op::Read, 8 + index * step, sectors))
        .collect()
}

#[test]
fn ios_above_the_limit_wait_for_their_second() {
    let times = times_ms(&profile(&[]), &reads(8, 1000, 5));
    assert_eq!(times, [1.0, 101.0, 201.0, 301.0, 401.0]);
}

#[test]
fn an_idle_volume_saves_up_the_window_and_no_more() {
    let wide = profile(&[("window_us = 100_000", "window_us = 300_000")]);
    let mut driver = VirtualTimeDriver::new(wide.build(1));
    driver.run_until(3_600_000 * MS);
    for read in reads(8, 1000, 5) {
        driver.submit(read);
    }
    let begun: Vec<Nanos> = driver
        .run_until_idle()
        .iter()
        .map(|done| done.at / MS - 3_600_001)
        .collect();
    assert_eq!(begun, [0, 0, 0, 100, 200]);
}

#[test]
fn a_megabyte_counts_as_four_ios() {
    let mut requests = reads(2048, 0, 1);
    requests.extend(reads(8, 100_000, 1).iter().map(|read| Request {
        sector: 500_000,
        ..*read
    }));
    assert_eq!(times_ms(&profile(&[]), &requests), [1.0, 401.0]);
    let any_size = profile(&[
        ("io_unit_kib = 256\n", ""),
        ("merge_window_us = 5000\n", ""),
    ]);
    assert_eq!(times_ms(&any_size, &requests), [1.0, 101.0]);
}

#[test]
fn eight_requests_in_sequence_count_as_one_io_up_to_its_size() {
    let in_sequence = reads(64, 64, 9);
    let times = times_ms(&profile(&[]), &in_sequence);
    assert_eq!(times[..8], [1.0; 8], "8 · 32 KiB are one I/O of 256 KiB");
    assert_eq!(times[8], 101.0, "the ninth begins another");
    let never = profile(&[("merge_window_us = 5000\n", "")]);
    assert_eq!(times_ms(&never, &in_sequence)[7], 701.0);
    assert_eq!(times_ms(&profile(&[]), &reads(64, 1000, 8))[7], 701.0);
}

#[test]
fn reads_and_writes_in_sequence_are_merged_each_with_their_own() {
    let mixed: Vec<Request> = (0..4_u64)
        .flat_map(|index| {
            [
                request(Op::Read, 8 + index * 8, 8),
                request(Op::Write, 9000 + index * 8, 8),
            ]
        })
        .collect();
    let times = times_ms(&profile(&[]), &mixed);
    // One I/O for all reads at once, one for all writes a tenth of a second later; order of arrival is kept.
    assert_eq!(times[..2], [1.0, 102.0]);
    assert_eq!(times[6..], [101.0, 102.0]);
}

#[test]
fn a_request_that_comes_after_the_window_is_not_merged() {
    for (gap, expected) in [(5, 1), (7, 100 - 7 + 1)] {
        let mut driver = VirtualTimeDriver::new(profile(&[]).build(1));
        driver.submit(request(Op::Read, 8, 8));
        driver.run_until(gap * MS);
        let took = driver.serve(request(Op::Read, 16, 8));
        assert_eq!(took, expected * MS, "{gap} ms after the request before");
    }
}

#[test]
fn throughput_and_whole_units_are_limits_of_their_own() {
    let slow = [
        ("most = 1000\n", "most = 0.524288\n"),
        ("most = 10\n", "most = 100000\n"),
        ("window_us = 100_000", "window_us = 500_000"),
    ];
    // 512 KiB a second, half of it saved up: each 256 KiB takes half a second.
    let times = times_ms(&profile(&slow), &reads(512, 1000, 3));
    assert_eq!(times, [1.0, 501.0, 1001.0]);
    let small = reads(8, 1000, 3);
    assert_eq!(times_ms(&profile(&slow), &small), [1.0; 3]);
    let mut whole = slow.to_vec();
    whole.push(("io_unit_kib", "whole_units = true\nio_unit_kib"));
    assert_eq!(times_ms(&profile(&whole), &small), [1.0, 501.0, 1001.0]);
}

#[test]
fn a_transfer_adds_its_time_to_a_request_but_not_to_the_others() {
    let moving = profile(&[
        ("most = 10\n", "most = 100000\n"),
        ("transfer_mb_per_s = 0", "transfer_mb_per_s = 1.024"),
    ]);
    assert_eq!(times_ms(&moving, &reads(8, 1000, 3)), [5.0; 3]);
}

#[test]
fn the_queue_depth_bounds_what_is_served_at_once() {
    let two = profile(&[
        ("most = 10\n", "most = 100000\n"),
        ("io_unit_kib", "queue_depth = 2\nio_unit_kib"),
    ]);
    let times = times_ms(&two, &reads(8, 1000, 5));
    assert_eq!(times, [1.0, 1.0, 2.0, 2.0, 3.0]);
}

#[test]
fn flushes_and_discards_cost_no_io() {
    let requests = [
        request(Op::Flush, 0, 0),
        request(Op::Discard, 0, 8),
        request(Op::Write, 0, 8),
    ];
    assert_eq!(times_ms(&profile(&[]), &requests), [0.03, 0.03, 2.0]);
}

#[test]
fn what_is_written_is_counted_once() {
    let mut driver = VirtualTimeDriver::new(profile(&[]).build(1));
    driver.serve(request(Op::Write, 0, 8));
    driver.serve(request(Op::Read, 0, 8));
    let written = driver.device().written();
    assert_eq!(
        (written.host_sectors, written.amplification()),
        (8, Some(1.0))
    );
}

#[test]
fn limits_that_make_no_sense_are_refused_by_name() {
    let more = refusal(&[("[limits.iops]\n", "[limits.iops]\nprovisioned = 11\n")]);
    assert!(
        more.contains("limits.iops.provisioned = 11 is more than a volume of 1 GiB allows"),
        "{more}"
    );
    assert!(more.contains("at most 10"), "{more}");
    let fewer = refusal(&[(
        "[limits.iops]\n",
        "[limits.iops]\nleast = 5\nprovisioned = 4\n",
    )]);
    assert!(
        fewer.contains("limits.iops.provisioned = 4 is less than a volume has at least"),
        "{fewer}"
    );
    let unit = refusal(&[("io_unit_kib = 256\n", "")]);
    assert!(unit.contains("give limits.io_unit_kib"), "{unit}");
    let order = refusal(&[("read_p99_us = 1000", "read_p99_us = 999")]);
    assert!(order.contains("latency.read_p99_us = 999"), "{order}");
    let least = refusal(&[("[limits.iops]\n", "[limits.iops]\nleast = 20\n")]);
    assert!(least.contains("limits.iops.most = 10"), "{least}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever comes when: within any stretch of time no more I/Os begin than it brings in and was saved up.
    #[test]
    fn no_stretch_of_time_has_more_ios_than_its_share(
        gaps_ms in proptest::collection::vec(0_u64..250, 2..60),
        window_ms in 100_u64..1000,
    ) {
        let window = format!("window_us = {}", window_ms * 1000);
        let mut device = profile(&[("window_us = 100_000", &window)]).build(1);
        let mut now = 0;
        for (id, gap) in (0..).zip(&gaps_ms) {
            now += gap * MS;
            device.submit(now, id, request(Op::Read, id * 1000, 8));
        }
        let mut done = Vec::new();
        device.advance(Nanos::MAX, &mut done);
        let saved = window_ms as f64 / 100.0;
        for first in 0..done.len() {
            for last in first..done.len() {
                let tenths = (done[last].at - done[first].at) as f64 / (100 * MS) as f64;
                let ios = (last - first + 1) as f64;
                prop_assert!(ios <= saved + tenths + 1e-6, "{ios} I/Os in {tenths} tenths of a second");
            }
        }
    }

    /// Small or merged requests do not pass large ones, whichever limit holds these back.
    #[test]
    fn requests_begin_in_order_of_arrival(
        arrivals in proptest::collection::vec((0_u64..250, 1_u32..4096, any::<bool>()), 2..60),
        depth in 1_u32..8,
    ) {
        let slots = format!("queue_depth = {depth}\nio_unit_kib");
        let slow = [("most = 1000\n", "most = 2\n"), ("io_unit_kib", slots.as_str())];
        let mut device = profile(&slow).build(1);
        let (mut now, mut sector) = (0, 0);
        for (id, (gap_ms, sectors, follows)) in (0..).zip(arrivals) {
            now += gap_ms * MS;
            sector += if follows { 0 } else { 10_000 };
            device.submit(now, id, request(Op::Read, sector, sectors));
            sector += u64::from(sectors);
        }
        let mut done = Vec::new();
        device.advance(Nanos::MAX, &mut done);
        prop_assert!(done.is_sorted_by_key(|done| done.id));
    }
}

#[test]
fn a_throughput_in_mebibytes_is_the_same_rate_also_on_top_of_another_profile() {
    let changes = [(
        "[limits.mb_per_s]\nmost = 1000",
        "[limits.mib_per_s]\nmost = 500",
    )];
    let mebibytes = profile(&changes);
    let megabytes = profile(&[("most = 1000", "most = 524.288")]);
    assert_eq!(mebibytes.params(), megabytes.params());
    assert_eq!(
        mebibytes.fields()["limits"]["mb_per_s"]["most"].as_float(),
        Some(524.288)
    );
    let base = changes.iter().fold(PROFILE.to_owned(), |text, (old, new)| {
        text.replace(old, new)
    });
    let library =
        tierwise_device::ProfileLibrary::new([("base".to_owned(), sourced(&base))].into());
    for (unit, rate) in [("mb_per_s", "262.144"), ("mib_per_s", "250")] {
        let text = format!(
            "like = \"base\"\n[limits.{unit}]\nmost = {rate}\n[source]\n\"limits.{unit}.most\" = \"made for the test\"\n"
        );
        let over = Profile::parse_with(&text, "over.toml", &library).expect("a valid profile");
        assert_eq!(
            over.fields()["limits"]["mb_per_s"]["most"].as_float(),
            Some(262.144),
            "{unit}"
        );
    }
    let both = refusal(&[(
        "[limits.mb_per_s]",
        "[limits.mib_per_s]\nmost = 1\n[limits.mb_per_s]",
    )]);
    assert!(both.contains("limits has mb_per_s and mib_per_s"), "{both}");
}

#[test]
fn a_range_may_be_in_mebibytes_too() {
    let library =
        tierwise_device::ProfileLibrary::new([("base".to_owned(), sourced(PROFILE))].into());
    let with = |ranges: &str, rate: &str| {
        let text = format!(
            "like = \"base\"\n{rate}[range]\n{ranges}\n[source]\nrange = \"several runs on one volume\"\n\
             {}",
            if rate.is_empty() {
                ""
            } else {
                "\"limits.mib_per_s.most\" = \"made for the test\"\n"
            }
        );
        Profile::parse_with(&text, "over.toml", &library)
    };
    let key = "\"limits.mib_per_s.most\"";
    for rate in ["", "[limits.mib_per_s]\nmost = 500\n"] {
        let profile = with(&format!("{key} = [450, 1000]"), rate).expect("a valid profile");
        let range = profile.fields()["range"]["limits.mb_per_s.most"].to_string();
        assert_eq!(range, "[471.8592, 1048.576]");
    }
    let both = format!("{key} = [450, 1000]\n\"limits.mb_per_s.most\" = [1, 2000]");
    let error = with(&both, "").expect_err("two ranges of one number");
    assert!(error.message.contains("range has"), "{}", error.message);
}
