//! Write amplification when 80 % of the device is static: where the static data lies decides.

use crate::flash::{Random, WORN, amplification, overwrite, ssd, units};
use tierwise_device::ssd::{Ssd, uniform_write_amplification};
use tierwise_device::{Device, Precondition, Written};

const HOT_SHARE: f64 = 0.2;

fn device(spare_share: f64, separate_moves: bool, state: Precondition) -> Ssd {
    let spare = format!("spare_share = {spare_share}\nseparate_moves = {separate_moves}");
    let mut device = ssd(&[("spare_share = 0.28", &spare)]);
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
            let measured = settled(device(spare_share, false, state), |unit| unit);
            println!("spare {spare_share}, {state:?}: {measured:.3}, closed form {formula:.3}");
            assert!((measured / formula - 1.0).abs() < 0.03, "{measured}");
        }
    }
}

/// Mixed with hot data, static data holds blocks above the share at which greedy cleaning takes them, and the
/// spare space in them is lost to the hot data. Writing moved units apart helps little, for the same reason.
#[test]
fn static_data_that_lies_mixed_in_locks_spare_space_up() {
    for spare_share in [0.07, 0.15, 0.28] {
        let uniform = uniform_write_amplification(spare_share);
        let apart = uniform_write_amplification(spare_share / HOT_SHARE);
        for separate in [false, true] {
            let after_wear = settled(device(spare_share, separate, WORN), |unit| unit);
            let ordered = device(spare_share, separate, Precondition::Sequential);
            let every_fifth = settled(ordered, |unit| unit * 5);
            println!(
                "spare {spare_share}, separate {separate}: apart {apart:.2}, uniform {uniform:.2}, after uniform wear {after_wear:.2}, every fifth {every_fifth:.2}"
            );
            assert!(after_wear > uniform, "{after_wear} against {uniform}");
            assert!(every_fifth > 1.5 * apart, "{every_fifth} against {apart}");
        }
    }
}

/// A handful of hot units have all the spare space: cleaning finds blocks with nothing left to move.
#[test]
fn a_tiny_hot_part_costs_nothing() {
    for active_share in [1e-9, 1e-5, 1e-3] {
        let mut device = device(0.28, false, Precondition::Random { active_share });
        let hot = ((units(&device) as f64 * active_share) as u64).max(1);
        let mut random = Random(2);
        overwrite(&mut device, 0, 300_000, || random.below(hot));
        let measured = amplification(Written::default(), device.written());
        assert!(measured < 1.01, "{active_share}: {measured}");
    }
}
