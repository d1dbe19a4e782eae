//! The disk model against measured drives: demerit figures and per-request errors, as bars that must not get worse.

use std::io::Read;
use std::path::{Path, PathBuf};

use tierwise_device::{Driver, Nanos, Op, Profile, Request, hdd};

/// One measured request; times in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Measured {
    request: Request,
    service_ns: Nanos,
    think_ns: Nanos,
}

/// The folder of measured drives, if this machine has it.
fn golden_folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/golden/hdd");
    folder.is_dir().then_some(folder)
}

/// The profile that the import makes of a drive's files.
fn import(drive: &Path) -> Profile {
    let read = |name: &str| std::fs::read_to_string(drive.join(name)).expect("a file of the drive");
    let text =
        hdd::import(&read("geometry.json"), &read("seek.csv")).expect("files of the known form");
    Profile::parse(&text, &drive.to_string_lossy()).expect("an importable drive")
}

fn requests(drive: &Path) -> Vec<Measured> {
    let file = std::fs::File::open(drive.join("requests.csv.gz")).expect("the drive's requests");
    let mut text = String::new();
    flate2::read::GzDecoder::new(file)
        .read_to_string(&mut text)
        .expect("compressed text");
    text.lines().skip(1).map(measured).collect()
}

fn measured(line: &str) -> Measured {
    let fields: Vec<&str> = line.split(',').collect();
    let number = |index: usize| fields[index].parse::<u64>().expect("a number");
    let op = if fields[0] == "R" {
        Op::Read
    } else {
        Op::Write
    };
    Measured {
        request: Request {
            op,
            sector: number(1),
            sectors: number(2) as u32,
            fua: false,
        },
        service_ns: number(3) * 1000,
        think_ns: number(4) * 1000,
    }
}

/// Service times of the requests on the model, one outstanding at a time, with the measured think times.
fn replay(profile: &Profile, requests: &[Measured]) -> Vec<Nanos> {
    let mut driver = Driver::new(profile.build(0));
    let mut arrival = 0;
    let serve = |measured: &Measured| {
        driver.run_until(arrival);
        let service = driver.serve(measured.request);
        arrival = driver.now() + measured.think_ns;
        service
    };
    requests.iter().map(serve).collect()
}

fn mean(times: &[Nanos]) -> f64 {
    times.iter().sum::<Nanos>() as f64 / times.len() as f64
}

/// Root mean square horizontal distance between two distributions, as a share of the first's mean
/// (Ruemmler and Wilkes, IEEE Computer 27(3), 1994).
fn demerit(real: &[Nanos], model: &[Nanos]) -> f64 {
    let sorted = |times: &[Nanos]| {
        let mut times = times.to_vec();
        times.sort_unstable();
        times
    };
    per_request(&sorted(real), &sorted(model))
}

/// Root mean square difference, pair by pair, as a share of the first's mean.
fn per_request(real: &[Nanos], model: &[Nanos]) -> f64 {
    let square: f64 = real
        .iter()
        .zip(model)
        .map(|(&a, &b)| (a as f64 - b as f64).powi(2))
        .sum();
    (square / real.len() as f64).sqrt() / mean(real)
}

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
    let Some(folder) = golden_folder() else {
        println!("skipped: no measured drives in ../shared/golden/hdd");
        return;
    };
    println!(
        "{:<12} {:>9} {:>9} {:>8} {:>8} {:>8} {:>8}",
        "drive", "real ms", "model ms", "demerit", "reads", "writes", "each"
    );
    for bar in BARS {
        let drive = folder.join(bar.drive);
        let requests = requests(&drive);
        let model = replay(&import(&drive), &requests);
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
