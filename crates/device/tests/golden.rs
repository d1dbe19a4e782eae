//! The disk model against measured drives: demerit figures, as bars that must not get worse.

mod support;

use tierwise_device::Op;

/// Drive, highest demerit allowed.
const BARS: [(&str, f64); 5] = [
    ("atlas-10k", 0.0225),
    ("atlas-iii", 0.0265),
    ("cheetah-9lp", 0.0275),
    ("dec-rz26", 0.024),
    ("hp-c2490a", 0.0285),
];

#[test]
fn measured_drives_are_met() {
    let Some(folder) = support::golden_folder() else {
        println!("skipped: no measured drives in ../shared/golden/hdd");
        return;
    };
    println!(
        "{:<12} {:>9} {:>9} {:>8} {:>8} {:>8} {:>8}",
        "drive", "real ms", "model ms", "demerit", "reads", "writes", "each"
    );
    for (name, bar) in BARS {
        let drive = folder.join(name);
        let requests = support::requests(&drive);
        let model = support::replay(&support::import(&drive), &requests);
        let real: Vec<u64> = requests
            .iter()
            .map(|measured| measured.service_ns)
            .collect();
        let of = |op: Op| {
            let pick = |times: &[u64]| -> Vec<u64> {
                times
                    .iter()
                    .zip(&requests)
                    .filter(|(_, m)| m.request.op == op)
                    .map(|(&time, _)| time)
                    .collect()
            };
            support::demerit(&pick(&real), &pick(&model))
        };
        let demerit = support::demerit(&real, &model);
        println!(
            "{name:<12} {:>9.3} {:>9.3} {:>7.2}% {:>7.2}% {:>7.2}% {:>7.2}%",
            support::mean(&real) / 1e6,
            support::mean(&model) / 1e6,
            demerit * 100.0,
            of(Op::Read) * 100.0,
            of(Op::Write) * 100.0,
            support::per_request(&real, &model) * 100.0,
        );
        assert!(demerit <= bar, "{name}: demerit {demerit}");
    }
}
