//! The three ways to give a seek curve, against what their sources say of them.

use tierwise_device::hdd::SeekCurve;

fn near(value: f64, expected: f64, tolerance: f64) {
    assert!(
        (value - expected).abs() <= tolerance,
        "{value}, expected {expected}"
    );
}

#[test]
fn a_table_is_met_and_linear_between_its_rows() {
    let curve = SeekCurve::Table(vec![(1.0, 1000.0), (11.0, 3000.0), (101.0, 6000.0)]);
    for (distance, time_us) in [
        (1.0, 1000.0),
        (6.0, 2000.0),
        (11.0, 3000.0),
        (101.0, 6000.0),
    ] {
        near(curve.time_us(distance), time_us, 1e-9);
    }
    // Beyond the last row with the slope of the last two.
    near(curve.time_us(131.0), 7000.0, 1e-9);
}

/// The HP 97560 as Ruemmler and Wilkes give it: 3.24 + 0.400·√d ms below 383 cylinders, 8.00 + 0.008·d ms from there.
#[test]
fn the_two_pieces_of_ruemmler_and_wilkes_meet() {
    let curve = SeekCurve::TwoPiece {
        short_us: (3240.0, 400.0),
        boundary_cylinders: 383.0,
        long_us: (8000.0, 8.0),
    };
    near(curve.time_us(1.0), 3640.0, 1e-9);
    near(curve.time_us(100.0), 7240.0, 1e-9);
    near(curve.time_us(1000.0), 16_000.0, 1e-9);
    near(curve.time_us(382.999), curve.time_us(383.0), 10.0);
}

/// Lee and Katz chose their coefficients so that the curve has the three times of the specification sheet; the
/// average is over random pairs of cylinders, of which a distance d has the share 2·(n − d)/n².
#[test]
fn the_curve_of_lee_and_katz_has_the_three_times_it_is_given() {
    let cylinders = 20_000.0;
    let curve = SeekCurve::LeeKatz {
        single_us: 800.0,
        average_us: 8500.0,
        full_us: 18_000.0,
        cylinders,
    };
    near(curve.time_us(1.0), 800.0, 1e-9);
    near(curve.time_us(cylinders), 18_000.0, 5.0);
    let share = |distance: f64| 2.0 * (cylinders - distance) / (cylinders * cylinders);
    let average: f64 = (1..cylinders as u32)
        .map(f64::from)
        .map(|distance| share(distance) * curve.time_us(distance))
        .sum();
    near(average, 8500.0, 10.0);
}
