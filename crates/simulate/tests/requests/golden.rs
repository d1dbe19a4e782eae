//! A simulation of the measured drives' requests gives the very times that the device's own replay gives.

use crate::drives;
use crate::support;
use std::fs;
use std::sync::atomic::AtomicBool;

use tierwise_device::Nanos;
use tierwise_simulate::Job;

fn services_ns(csv: &str) -> Vec<Nanos> {
    let service = |line: &str| {
        let us: f64 = line
            .rsplit(',')
            .next()
            .and_then(|us| us.parse().ok())
            .expect("a time");
        (us * 1e3).round() as Nanos
    };
    csv.lines().skip(1).map(service).collect()
}

#[test]
fn measured_drives_give_the_same_times_as_their_replay() {
    let Some(folder) = drives::golden_folder() else {
        println!("skipped: no measured drives in ../shared/golden/hdd");
        return;
    };
    for drive in fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
    {
        if !drive.is_dir() {
            continue;
        }
        let times = support::new_path();
        let job = Job {
            requests: Some(drive.join("requests.csv.gz")),
            times: Some(times.clone()),
            ..Job::default()
        };
        let profile = drives::import(&drive);
        let compared = job
            .run(&profile, &AtomicBool::new(false))
            .expect("measured requests")
            .compared
            .expect("measured times");
        let requests = drives::requests(&drive);
        let replayed = drives::replay(&profile, &requests);
        assert_eq!(
            services_ns(&fs::read_to_string(times).expect("times")),
            replayed
        );
        let real: Vec<Nanos> = requests
            .iter()
            .map(|measured| measured.service_ns)
            .collect();
        assert_eq!(compared.measured_mean_us, drives::mean(&real) / 1e3);
        assert_eq!(compared.demerit, drives::demerit(&real, &replayed));
        assert_eq!(compared.each, drives::per_request(&real, &replayed));
    }
}
