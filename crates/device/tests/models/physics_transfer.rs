//! Transfers: the media rate of each zone, and the bus beside the medium.

use crate::disk::{OUTER_CYLINDER, profile, request};
use tierwise_device::{Driver, Op};

/// First sector of the inner zone: 50,000 cylinders of 2 tracks of 200.
const INNER: u64 = 50_000 * OUTER_CYLINDER;

#[test]
fn each_zone_has_its_own_media_rate() {
    // A track takes its turn and the skew to the next: 230 or 115 sector times for 200 or 100 sectors.
    for (first, sector_ns, track) in [(0, 50_000, 200), (INNER, 100_000, 100)] {
        let mut driver = Driver::new(profile(&[]).build(1));
        driver.serve(request(Op::Read, first, 1));
        let start = driver.now();
        let tracks = 400;
        for index in 0..tracks {
            driver.serve(request(Op::Read, first + 1 + index * track, track as u32));
        }
        let per_track = (driver.now() - start) / tracks;
        let expected = sector_ns * track * 115 / 100;
        assert!(
            per_track.abs_diff(expected) < expected / 100,
            "{per_track} ns a track from {first}, expected {expected}"
        );
    }
}

/// Mean service time of writes of `sectors` on one track, at times spread over the turn.
fn mean_write_ns(sector_us: &str, sectors: u32) -> u64 {
    let mut driver = Driver::new(profile(&[("sector_us", sector_us)]).build(1));
    driver.serve(request(Op::Write, 0, 1));
    let count = 500;
    let serve = |index: u64| {
        driver.run_until(driver.now() + index * 6_180_340 % 10_000_000);
        driver.serve(request(Op::Write, index % 2 * 60, sectors))
    };
    (1..=count).map(serve).sum::<u64>() / count
}

#[test]
fn a_write_streams_from_the_bus_to_the_medium() {
    // 100 sectors pass in 5 ms. A bus twice as fast is not felt; one half as fast holds back the medium by the
    // 5 ms that it lags, not by the 10 ms that it takes.
    let medium = mean_write_ns("0.1", 100);
    assert!(mean_write_ns("25", 100).abs_diff(medium) < 200_000);
    let late = mean_write_ns("100", 100) - medium;
    assert!((4_000_000..6_000_000).contains(&late), "{late} ns later");
}

#[test]
fn a_read_from_the_medium_ends_with_the_slower_of_bus_and_medium() {
    let service = |sector_us| {
        let mut driver = Driver::new(profile(&[("sector_us", sector_us)]).build(1));
        driver.serve(request(Op::Read, 0, 100))
    };
    assert_eq!(service("10"), service("0") + 10_000);
    assert_eq!(service("100"), service("0") + 5_000_000);
}
