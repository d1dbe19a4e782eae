//! Measured drives: their files, replayed on the model.

use std::io::Read;
use std::path::{Path, PathBuf};

use tierwise_device::{Nanos, Op, Profile, Request, VirtualTimeDriver, hdd};

/// One measured request; times in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub request: Request,
    pub service_ns: Nanos,
    pub think_ns: Nanos,
}

/// The folder of measured drives, if this machine has it.
pub fn golden_folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/golden/hdd");
    folder.is_dir().then_some(folder)
}

/// The profile that the import makes of a drive's files.
pub fn import(drive: &Path) -> Profile {
    let read = |name: &str| std::fs::read_to_string(drive.join(name)).expect("a file of the drive");
    let text = hdd::profile_from_drive_files(&read("geometry.json"), &read("seek.csv"))
        .expect("files of the known form");
    Profile::parse(&text, &drive.to_string_lossy()).expect("an importable drive")
}

pub fn requests(drive: &Path) -> Vec<Measured> {
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
        request: Request::new(op, number(1), number(2) as u32),
        service_ns: number(3) * 1000,
        think_ns: number(4) * 1000,
    }
}

/// Service times of the requests on the model, one outstanding at a time, with the measured think times.
pub fn replay(profile: &Profile, requests: &[Measured]) -> Vec<Nanos> {
    let mut driver = VirtualTimeDriver::new(profile.build(0));
    let mut arrival = 0;
    let serve = |measured: &Measured| {
        driver.run_until(arrival);
        let service = driver.serve(measured.request);
        arrival = driver.now() + measured.think_ns;
        service
    };
    requests.iter().map(serve).collect()
}

pub fn mean(times: &[Nanos]) -> f64 {
    times.iter().sum::<Nanos>() as f64 / times.len() as f64
}

/// Root mean square horizontal distance between two distributions, as a share of the first's mean
/// (Ruemmler and Wilkes, IEEE Computer 27(3), 1994).
pub fn demerit(real: &[Nanos], model: &[Nanos]) -> f64 {
    let sorted = |times: &[Nanos]| {
        let mut times = times.to_vec();
        times.sort_unstable();
        times
    };
    per_request(&sorted(real), &sorted(model))
}

/// Root mean square difference, pair by pair, as a share of the first's mean.
pub fn per_request(real: &[Nanos], model: &[Nanos]) -> f64 {
    let square: f64 = real
        .iter()
        .zip(model)
        .map(|(&a, &b)| (a as f64 - b as f64).powi(2))
        .sum();
    (square / real.len() as f64).sqrt() / mean(real)
}
