//! Every shipped profile can be read and built, and bad ones are refused with file, key and range.

use crate::shipped;
use std::path::PathBuf;

use tierwise_device::{Profile, ProfileError};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../python/tierwise/data/devices")
}

fn text_of(name: &str) -> String {
    std::fs::read_to_string(folder().join(format!("{name}.toml"))).expect("a shipped profile")
}

fn refusal(text: &str) -> ProfileError {
    Profile::parse(text, "bad.toml").expect_err("the profile is bad")
}

#[test]
fn every_shipped_profile_builds() {
    let files = std::fs::read_dir(folder()).expect("the folder of profiles");
    let mut names = Vec::new();
    for file in files
        .map(|file| file.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
    {
        let text = std::fs::read_to_string(&file).expect("a profile");
        let profile = Profile::parse_with(&text, &file.to_string_lossy(), &shipped::library())
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            profile.build(1).capacity_sectors() * 512,
            profile.capacity_bytes(),
            "{}",
            profile.name()
        );
        assert!(!profile.sources().is_empty());
        names.push(profile.name().to_owned());
    }
    for name in [
        "hdd-10k-18g-fc",
        "hdd-10k-sas",
        "hdd-15k-sas",
        "hdd-7k2",
        "hdd-7k2-200g-ata",
        "hdd-7k2-20t-nearline",
        "hdd-7k2-sata-2009",
        "ram",
        "ssd-dram-fc",
        "ssd-dram-fc-64g",
        "ssd-nvme-dc",
        "ssd-sata-dc",
        "volume-aws-gp3",
        "volume-aws-gp3-16k",
        "volume-aws-io2",
        "volume-aws-sc1",
        "volume-aws-st1",
        "volume-azure-premium-v2",
        "volume-gcp-hyperdisk-balanced",
        "volume-gcp-pd-ssd",
        "zero",
    ] {
        assert!(names.iter().any(|known| known == name), "no profile {name}");
    }
}

#[test]
fn capacities_are_those_of_the_data_sheets() {
    let sectors = |name| shipped::profile(name).capacity_bytes() / 512;
    assert_eq!(sectors("hdd-10k-18g-fc"), 35_566_480);
    assert_eq!(sectors("hdd-7k2-sata-2009"), 976_773_168);
    assert_eq!(sectors("hdd-7k2"), 1_953_525_168);
    assert_eq!(sectors("hdd-7k2-200g-ata"), 390_721_968);
    assert_eq!(sectors("hdd-15k-sas"), 286_749_488);
    assert_eq!(sectors("hdd-10k-sas"), 4_688_430_768);
    assert_eq!(sectors("hdd-7k2-20t-nearline"), 39_063_650_304);
    assert_eq!(sectors("ssd-dram-fc-64g"), 125_000_000);
    assert_eq!(sectors("volume-aws-gp3"), 2_147_483_648);
}

#[test]
fn an_unknown_key_is_named_with_the_known_ones() {
    let error = refusal(&text_of("hdd-7k2").replace("head_switch_us", "head_swich_us"));
    assert_eq!(error.file, "bad.toml");
    assert!(
        error.message.contains("mechanics.head_switch_us"),
        "{error}"
    );
    let error = refusal(&text_of("zero").replace("[source]", "colour = 3\n[source]"));
    assert!(error.message.contains("colour"), "{error}");
    assert!(error.fix.contains("link_mb_per_s"), "{}", error.fix);
}

#[test]
fn a_missing_key_is_named() {
    let error = refusal(&text_of("zero").replace("read_latency_us = 0\n", ""));
    assert!(
        error.message.contains("missing key read_latency_us"),
        "{error}"
    );
}

#[test]
fn an_impossible_value_is_named_with_its_range() {
    let error = refusal(&text_of("hdd-7k2").replace("rpm = 7200", "rpm = -7200"));
    assert!(error.message.contains("mechanics.rpm = -7200"), "{error}");
    assert!(error.fix.contains("1000 to 30000"), "{}", error.fix);
    let error =
        refusal(&text_of("hdd-7k2").replace("sectors_per_track = 2620", "sectors_per_track = 0"));
    assert!(
        error.message.contains("zones[0].sectors_per_track = 0"),
        "{error}"
    );
    let error = refusal(&text_of("hdd-7k2").replace("policy = \"sptf\"", "policy = \"scan\""));
    assert!(error.fix.contains("fcfs, sstf, sptf"), "{}", error.fix);
}

#[test]
fn a_number_without_a_source_is_refused() {
    let text: String = text_of("zero")
        .lines()
        .filter(|line| !line.starts_with("capacity_mb = \""))
        .map(|l| format!("{l}\n"))
        .collect();
    assert!(refusal(&text).message.contains("capacity_mb has no source"));
    let text = text_of("zero") + "price = \"a made-up key\"\n";
    assert!(
        refusal(&text)
            .message
            .contains("source.price covers no number")
    );
}

#[test]
fn text_that_is_not_toml_is_refused_on_one_line() {
    let error = refusal("kind = \nsummary");
    assert!(error.message.starts_with("not TOML"), "{error}");
    assert!(!error.to_string().contains('\n'), "{error}");
}
