//! Write amplification against the closed form: from the computed steady state and after a replayed fill.

use tierwise_device::ssd::{Ssd, uniform_write_amplification};
use tierwise_device::{Device, Precondition, WrittenSectors};

use crate::support::*;

const SPARE_SHARES: [f64; 4] = [0.07, 0.15, 0.28, 0.50];

/// Overwrites the device `rounds` times at random; write amplification meanwhile.
fn overwrite_at_random(device: &mut Ssd, rounds: f64, seed: u64) -> f64 {
    let before = device.written();
    let (all, mut random) = (units(device), Random(seed));
    overwrite(device, 0, (all as f64 * rounds) as u64, || {
        random.below(all)
    });
    amplification(before, device.written())
}

fn replayed(spare_share: f64) -> Ssd {
    let mut device = with_spare(spare_share);
    device.precondition(Precondition::Sequential);
    overwrite_at_random(&mut device, 3.0, 1);
    device
}

/// Valid shares of the full blocks at tenths of their distribution.
fn tenths(device: &Ssd) -> Vec<f64> {
    let mut shares: Vec<f64> = device.valid_shares().collect();
    shares.sort_by(f64::total_cmp);
    (0..=10)
        .map(|tenth| shares[tenth * (shares.len() - 1) / 10])
        .collect()
}

/// The principal branch of Lambert's W for −1/e < x < 0, by Newton's method.
fn lambert_w0(x: f64) -> f64 {
    (0..100).fold(0.0, |w: f64, _| {
        w - (w * w.exp() - x) / (w.exp() * (w + 1.0))
    })
}

#[test]
fn the_closed_form_is_that_of_lamberts_function() {
    for spare in [0.02, 0.07, 0.15, 0.28, 0.50, 3.0] {
        let space: f64 = 1.0 + spare;
        let known = space / (space + lambert_w0(-space * (-space).exp()));
        let ours = uniform_write_amplification(spare);
        assert!((ours / known - 1.0).abs() < 1e-6, "{ours}, not {known}");
    }
}

/// 3 % is the bar; the closed form is the limit of large blocks, and these of 512 units come within 1.3 %.
#[test]
fn computed_and_replayed_steady_states_meet_the_closed_form() {
    for spare_share in SPARE_SHARES {
        let formula = uniform_write_amplification(spare_share);
        let (mut computed, mut replayed) = (worn(spare_share), replayed(spare_share));
        let pairs = tenths(&computed).into_iter().zip(tenths(&replayed));
        let apart = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let from_computed = overwrite_at_random(&mut computed, 1.0, 2);
        let from_replayed = overwrite_at_random(&mut replayed, 1.0, 3);
        println!(
            "spare {spare_share:.2}: closed form {formula:.3}, computed {from_computed:.3}, replayed {from_replayed:.3}, blocks apart by {apart:.4}"
        );
        for measured in [from_computed, from_replayed] {
            assert!((measured / formula - 1.0).abs() < 0.03, "{measured}");
        }
        assert!((from_computed / from_replayed - 1.0).abs() < 0.01);
        assert!(apart < 0.01, "valid shares differ by {apart}");
    }
}

/// The first tenth of a round tells whether the computed state settles at all.
#[test]
fn the_computed_state_is_steady_from_the_first_write() {
    for spare_share in SPARE_SHARES {
        let mut device = worn(spare_share);
        let first = overwrite_at_random(&mut device, 0.1, 4);
        let later = overwrite_at_random(&mut device, 1.0, 5);
        assert!(
            (first / later - 1.0).abs() < 0.04,
            "first {first}, later {later}"
        );
    }
}

#[test]
fn sequential_overwrites_move_nothing() {
    let mut device = with_spare(0.07);
    device.precondition(Precondition::Sequential);
    let (all, mut unit) = (units(&device), 0);
    let before = device.written();
    overwrite(&mut device, 0, 2 * all, || {
        unit = (unit + 1) % all;
        unit
    });
    let measured = amplification(before, device.written());
    assert!(measured < 1.001, "{measured}");
    assert!(
        device.written().erases > 0,
        "blocks are erased all the same"
    );
}

/// Half of the space discarded is spare space: the rest is overwritten as with that much more of it.
#[test]
fn discarded_space_is_spare_space() {
    let mut device = worn(0.28);
    let all = units(&device);
    discard(&mut device, all / 2..all);
    let mut random = Random(7);
    let active = all / 2;
    overwrite(&mut device, 0, 3 * all, || random.below(active));
    let before = device.written();
    overwrite(&mut device, 0, active, || random.below(active));
    let measured = amplification(before, device.written());
    let formula = uniform_write_amplification(2.0 * 1.28 - 1.0);
    assert!(
        (measured / formula - 1.0).abs() < 0.03,
        "{measured}, closed form {formula}"
    );
}

// Write amplification when 80 % of the device is static: where the static data lies decides.

const HOT_SHARE: f64 = 0.2;

fn device(spare_share: f64, state: Precondition) -> Ssd {
    let mut device = with_spare(spare_share);
    device.precondition(state);
    device
}

/// Write amplification of overwrites of the hot units, after as many rounds as it takes to settle.
fn settled(mut device: Ssd, hot_unit: impl Fn(u64) -> u64) -> f64 {
    let hot = (units(&device) as f64 * HOT_SHARE) as u64;
    let mut random = Random(1);
    overwrite(&mut device, 0, hot * 8, || hot_unit(random.below(hot)));
    let before = device.written();
    overwrite(&mut device, 0, hot * 2, || hot_unit(random.below(hot)));
    amplification(before, device.written())
}

/// Written once in order, and hot at the front: full blocks of static data are never moved, and all spare space
/// serves the hot fifth.
#[test]
fn static_data_that_lies_apart_lends_its_spare_space() {
    for spare_share in [0.07, 0.15, 0.28] {
        let formula = uniform_write_amplification(spare_share / HOT_SHARE);
        let apart = Precondition::Random {
            active_share: HOT_SHARE,
        };
        for state in [apart, Precondition::Sequential] {
            let measured = settled(device(spare_share, state), |unit| unit);
            println!("spare {spare_share}, {state:?}: {measured:.3}, closed form {formula:.3}");
            assert!((measured / formula - 1.0).abs() < 0.03, "{measured}");
        }
    }
}

/// Mixed with hot data, static data holds blocks above the share at which greedy cleaning takes them, and the
/// spare space in them is lost to the hot data.
#[test]
fn static_data_that_lies_mixed_in_locks_spare_space_up() {
    for spare_share in [0.07, 0.15, 0.28] {
        let uniform = uniform_write_amplification(spare_share);
        let apart = uniform_write_amplification(spare_share / HOT_SHARE);
        let after_wear = settled(device(spare_share, WORN), |unit| unit);
        let ordered = device(spare_share, Precondition::Sequential);
        let every_fifth = settled(ordered, |unit| unit * 5);
        println!(
            "spare {spare_share}: apart {apart:.2}, uniform {uniform:.2}, after uniform wear {after_wear:.2}, every fifth {every_fifth:.2}"
        );
        assert!(after_wear > uniform, "{after_wear} against {uniform}");
        assert!(every_fifth > 1.5 * apart, "{every_fifth} against {apart}");
    }
}

/// A handful of hot units have all the spare space: cleaning finds blocks with nothing left to move.
#[test]
fn a_tiny_hot_part_costs_nothing() {
    for active_share in [1e-9, 1e-5, 1e-3] {
        let mut device = device(0.28, Precondition::Random { active_share });
        let hot = ((units(&device) as f64 * active_share) as u64).max(1);
        let mut random = Random(2);
        overwrite(&mut device, 0, 300_000, || random.below(hot));
        let measured = amplification(WrittenSectors::default(), device.written());
        assert!(measured < 1.01, "{active_share}: {measured}");
    }
}

// The latency cliff: random writes run at the flash's rate until spare blocks run out, then at that of cleaning.

const SPARE: f64 = 0.28;
const WINDOW_BYTES: u64 = 20_000_000;
/// Eight dies that program 16 KiB in 400 us.
const FLASH_MB_PER_S: f64 = 8.0 * 16_384.0 / 400.0;

/// Random writes to a small device, all of whose sectors were written in order.
fn history(windows: u64) -> (Vec<Window>, f64) {
    let mut device = ssd(&[("write_cache_kib = 1024", "write_cache_kib = 512")]);
    device.precondition(Precondition::Sequential);
    let capacity_bytes = device.capacity_sectors() as f64 * 512.0;
    let history = overwrite_history(&mut device, 4, WINDOW_BYTES, windows, 1);
    (history, capacity_bytes)
}

#[test]
fn the_cliff_comes_when_the_spare_space_is_written() {
    let (history, capacity_bytes) = history(30);
    let cliff = history
        .iter()
        .find(|window| window.mb_per_s < FLASH_MB_PER_S * 0.8)
        .expect("a cliff");
    let spare_bytes = SPARE * capacity_bytes;
    let late = cliff.written_bytes as f64 - spare_bytes;
    assert!(
        late.abs() < 2.0 * WINDOW_BYTES as f64,
        "the cliff lies {late} bytes behind the spare space of {spare_bytes}"
    );
    let before = &history[5];
    assert!((before.mb_per_s / FLASH_MB_PER_S - 1.0).abs() < 0.03);
    assert_eq!(before.write_amplification, 1.0);
    assert!(
        cliff.p99_ns as f64 > 1.5 * before.p99_ns as f64,
        "p99 {} ns, {} ns before",
        cliff.p99_ns,
        before.p99_ns
    );
}

/// Each unit of the host costs its program, the read and program of the units moved for it, and its share of
/// an erase; eight dies do that work side by side.
#[test]
fn beyond_the_cliff_the_rate_is_what_cleaning_leaves() {
    let (history, _) = history(250);
    let settled = &history[200..];
    let mean_mb_per_s =
        settled.len() as f64 / settled.iter().map(|w| 1.0 / w.mb_per_s).sum::<f64>();
    let amplification = uniform_write_amplification(SPARE);
    let moves = amplification - 1.0;
    let erase_us = 2000.0 / 16.0 * amplification;
    let page_us = 400.0 + moves * (400.0 + 50.0) + erase_us;
    let expected = 8.0 * 16_384.0 / page_us;
    assert!(
        (mean_mb_per_s / expected - 1.0).abs() < 0.03,
        "{mean_mb_per_s} MB/s, expected {expected}"
    );
}

#[test]
fn a_worn_device_starts_beyond_the_cliff() {
    let mut device = ssd(&[]);
    device.precondition(WORN);
    let worn = overwrite_history(&mut device, 4, WINDOW_BYTES, 20, 2);
    let (replayed, _) = history(250);
    let ratio = worn[19].mb_per_s / replayed[249].mb_per_s;
    assert!((ratio - 1.0).abs() < 0.03, "ratio {ratio}");
}
