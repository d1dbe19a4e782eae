//! Write amplification against the closed form: from the computed steady state and after a replayed fill.

use crate::flash;
use crate::flash::{Random, amplification, overwrite, units, with_spare, worn};
use tierwise_device::ssd::{Ssd, uniform_write_amplification};
use tierwise_device::{Device, Precondition};

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
fn moved_units_apart_cost_the_same_under_uniform_writes() {
    let apart = "spare_share = 0.28\nseparate_moves = true";
    let mut device = flash::ssd(&[("spare_share = 0.28", apart)]);
    device.precondition(flash::WORN);
    let formula = uniform_write_amplification(0.28);
    let measured = overwrite_at_random(&mut device, 1.0, 6);
    assert!((measured / formula - 1.0).abs() < 0.03, "{measured}");
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
    flash::discard(&mut device, all / 2..all);
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
