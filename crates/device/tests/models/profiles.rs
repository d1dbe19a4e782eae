//! Every shipped profile can be read and built, and bad ones are refused with file, key and range.

use std::collections::BTreeMap;

use tierwise_device::{Profile, ProfileError, ProfileLibrary};

use crate::support::*;

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
        let profile = Profile::parse_with(&text, &file.to_string_lossy(), &library())
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
    let sectors = |name| shipped(name).capacity_bytes() / 512;
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
    let error = refusal(&shipped_text("hdd-7k2").replace("head_switch_us", "head_swich_us"));
    assert_eq!(error.file, "bad.toml");
    assert!(
        error.message.contains("mechanics.head_switch_us"),
        "{error}"
    );
    let error = refusal(&shipped_text("zero").replace("[source]", "colour = 3\n[source]"));
    assert!(error.message.contains("colour"), "{error}");
    assert!(error.fix.contains("link_mb_per_s"), "{}", error.fix);
}

#[test]
fn a_missing_key_is_named() {
    let error = refusal(&shipped_text("zero").replace("read_latency_us = 0\n", ""));
    assert!(
        error.message.contains("missing key read_latency_us"),
        "{error}"
    );
}

#[test]
fn an_impossible_value_is_named_with_its_range() {
    let error = refusal(&shipped_text("hdd-7k2").replace("rpm = 7200", "rpm = -7200"));
    assert!(error.message.contains("mechanics.rpm = -7200"), "{error}");
    assert!(error.fix.contains("1000 to 30000"), "{}", error.fix);
    let error = refusal(
        &shipped_text("hdd-7k2").replace("sectors_per_track = 2620", "sectors_per_track = 0"),
    );
    assert!(
        error.message.contains("zones[0].sectors_per_track = 0"),
        "{error}"
    );
    let error = refusal(&shipped_text("hdd-7k2").replace("policy = \"sptf\"", "policy = \"scan\""));
    assert!(error.fix.contains("fcfs, sptf"), "{}", error.fix);
}

#[test]
fn a_number_without_a_source_is_refused() {
    let text: String = shipped_text("zero")
        .lines()
        .filter(|line| !line.starts_with("capacity_mb = \""))
        .map(|l| format!("{l}\n"))
        .collect();
    assert!(refusal(&text).message.contains("capacity_mb has no source"));
    let text = shipped_text("zero") + "price = \"a made-up key\"\n";
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

// Profiles that are like others, and prices.

const BASE: &str = r#"
kind = "ram"
summary = "base"
capacity_mb = 1000
read_latency_us = 10
write_latency_us = 20
flush_latency_us = 30
link_mb_per_s = 100
[price]
usd = 600
[source]
capacity_mb = "data sheet, page 1"
read_latency_us = "data sheet, page 1"
write_latency_us = "data sheet, page 1"
flush_latency_us = "data sheet, page 1"
link_mb_per_s = "data sheet, page 1"
price = "price list of 2024"
"#;

fn parse(text: &str) -> Result<Profile, ProfileError> {
    let loop_to_itself = "like = \"loop\"\n[source]\n";
    let library = ProfileLibrary::new(BTreeMap::from([
        ("base".into(), BASE.into()),
        ("loop".into(), loop_to_itself.into()),
    ]));
    Profile::parse_with(text, "own.toml", &library)
}

#[test]
fn what_is_not_given_is_taken_over() {
    let profile = parse(
        "like = \"base\"\nsummary = \"own\"\ncapacity_mb = 2000\n[source]\ncapacity_mb = \"another page\"\n",
    )
    .expect("a valid profile");
    assert_eq!(profile.summary(), "own");
    assert_eq!(profile.capacity_bytes(), 2_000_000_000);
    let source = profile
        .sources()
        .iter()
        .find(|source| source.key == "capacity_mb");
    assert_eq!(source.expect("a source").text, "another page");
    assert_eq!(profile.fields()["price"]["usd"].as_integer(), Some(600));
}

#[test]
fn a_number_of_its_own_needs_a_source_of_its_own() {
    let error = parse("like = \"base\"\ncapacity_mb = 2000\n").expect_err("no source");
    assert_eq!(error.message, "capacity_mb has no source");
}

#[test]
fn an_unknown_name_is_refused() {
    let error = parse("like = \"bass\"\n").expect_err("unknown");
    assert_eq!(error.message, "like = \"bass\" is not a known profile");
}

#[test]
fn a_circle_is_refused() {
    let error = parse("like = \"loop\"\n").expect_err("a circle");
    assert_eq!(error.message, "like = \"loop\" leads back to itself");
}

#[test]
fn a_price_needs_a_source() {
    let text = BASE.replace("price = \"price list of 2024\"\n", "");
    let error = Profile::parse(&text, "base.toml").expect_err("no source");
    assert_eq!(error.message, "price.usd has no source");
}

#[test]
fn a_price_below_zero_and_steps_that_fall_are_refused() {
    for (old, message) in [
        ("usd = -1", "price.usd = -1 is impossible"),
        (
            "usd_per_iops_month_above = [[2, 0.1], [1, 0.1]]",
            "price.usd_per_iops_month_above is not ascending",
        ),
        ("eur = 600", "unknown key price.eur"),
    ] {
        let text = BASE.replace("usd = 600", old);
        let error = Profile::parse(&text, "base.toml").expect_err(old);
        assert_eq!(error.message, message);
    }
}

#[test]
fn a_range_holds_the_number_that_it_is_of() {
    let with = |range: &str| {
        let table = format!("[range]\n{range}\n[price]");
        let sources = "[source]\nrange = \"several runs on one drive\"";
        Profile::parse(
            &BASE.replace("[price]", &table).replace("[source]", sources),
            "base.toml",
        )
    };
    assert!(with("flush_latency_us = [10, 90.5]").is_ok());
    for (range, message) in [
        (
            "flush_latency_us = [40, 90]",
            "flush_latency_us = 30 is outside of its range, 40 to 90",
        ),
        (
            "flush_latency_us = [90, 10]",
            "range.\"flush_latency_us\" = [90, 10] is no range",
        ),
        (
            "flush_latency_us = 30",
            "range.\"flush_latency_us\" = 30 is no range",
        ),
        (
            "summary = [1, 2]",
            "range.\"summary\" is no number of this profile",
        ),
        (
            "\"price.eur\" = [1, 2]",
            "range.\"price.eur\" is no number of this profile",
        ),
    ] {
        assert_eq!(with(range).expect_err(range).message, message);
    }
    assert!(with("\"price.usd\" = [500, 700]").is_ok());
}

// What a profile of an array may say, and what it says of the whole.

fn array_refusal(text: &str) -> String {
    parse_array(text).expect_err("a bad profile").message
}

#[test]
fn bad_arrays_are_refused_by_name() {
    let bad = |member, level, members, more: &str| {
        array_refusal(&array_text(member, level, members, more))
    };
    let stripe = "stripe_kib = 64\n";
    let cases = [
        (
            bad("small-disc", "raid0", 2, stripe),
            "member = \"small-disc\" is not a known profile",
        ),
        (
            bad("circle", "raid1", 2, ""),
            "member circle: member = \"circle\" leads back to itself",
        ),
        (
            bad("small-ram", "raid6", 4, stripe),
            "level = \"raid6\" is not known",
        ),
        (
            bad("small-ram", "raid5", 2, stripe),
            "members = 2 is impossible",
        ),
        (
            bad("small-ram", "raid10", 5, stripe),
            "members = 5 cannot be paired",
        ),
        (
            bad("small-ram", "raid1", 2, stripe),
            "unknown key stripe_kib",
        ),
        (
            bad("small-ram", "raid0", 2, "stripe_kib = 40000\n"),
            "stripe_kib is larger than a member",
        ),
        (
            bad(
                "small-ram",
                "raid0",
                2,
                "stripe_kib = 64\nfailed_members = 1\n",
            ),
            "failed_members = 1 with level = \"raid0\", which survives no failure",
        ),
        (
            bad("small-ram", "raid1", 2, "member_write_cache = true\n"),
            "member_write_cache can only turn off the write cache of a disk",
        ),
        (
            bad("hdd-7k2-sata-2009", "raid5", 3, &controller(true)),
            "controller.protected = true with members that may lose what they report as written",
        ),
        (
            bad(
                "small-ram",
                "raid5",
                3,
                &controller(true).replace("write_share = 0.5", "write_share = 0"),
            ),
            "controller.protected = true protects nothing: no cache or no share of it for writes",
        ),
    ];
    for (message, expected) in cases {
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn an_array_may_lose_what_its_members_or_its_cache_may_lose() {
    let volatile = |profile: Profile| profile.write_cache();
    let stripe = "stripe_kib = 64\n";
    assert!(volatile(array("hdd-7k2-sata-2009", "raid0", 2, stripe)));
    let off = format!("member_write_cache = false\n{}", controller(true));
    assert!(!volatile(array("hdd-7k2-sata-2009", "raid5", 3, &off)));
    assert!(volatile(array(
        "hdd-10k-18g-fc",
        "raid5",
        3,
        &controller(false)
    )));
    assert!(!volatile(array("hdd-10k-18g-fc", "raid5", 3, stripe)));
}

#[test]
fn a_protected_cache_that_reports_write_back_is_sent_flushes() {
    let volatile = |edit: &[(&str, &str)]| {
        Profile::parse(&flash_text(edit), "flash.toml")
            .expect("a sound profile")
            .write_cache()
    };
    let reports = "power_loss_protection = true\nreports_write_back = true";
    assert!(!volatile(&[]));
    assert!(volatile(&[("power_loss_protection = true", reports)]));
    let uncached = "power_loss_protection = false\nreports_write_back = true";
    let no_cache = ("write_cache_kib = 1024", "write_cache_kib = 0");
    assert!(volatile(&[
        ("power_loss_protection = true", uncached),
        no_cache
    ]));
}

// Profiles of SSDs that cannot be: refused with the key and what is allowed.

fn flash_refusal(old: &str, new: &str) -> ProfileError {
    let text = flash_text(&[(old, new)]);
    Profile::parse(&text, "bad.toml").expect_err("the profile is bad")
}

#[test]
fn impossible_flash_is_refused() {
    let slc =
        "[slc_cache]\nsize_mb = 1\nfull_size_mb = 2\nprogram_us = 100\nidle_ms = 1\n[cleaning]";
    let lists = [
        (
            "read_us = 50",
            "read_us = [50, -3]",
            "read_us = [50, -3] is impossible",
        ),
        ("read_us = 50", "read_us = []", "read_us is a array"),
        ("read_us = 50", "read_us = [\"fast\"]", "read_us is a array"),
        (
            "spare_share = 0.28",
            "spare_share = 0",
            "cleaning.spare_share = 0 is impossible",
        ),
        (
            "spare_share = 0.28",
            "spare = 0.28",
            "missing key cleaning.spare_share",
        ),
        (
            "[cleaning]",
            "[cleaning]\ncolour = 1",
            "unknown key cleaning.colour",
        ),
        (
            "[cleaning]",
            "[cleaning]\nmapping_kib = 12",
            "cleaning.mapping_kib = 12 does not divide",
        ),
        (
            "pages_per_block = 16",
            "pages_per_block = 4096",
            "capacity_mb holds 1 of them",
        ),
        ("[cleaning]", slc, "slc_cache.full_size_mb is above"),
    ];
    for (old, new, message) in lists {
        let error = flash_refusal(old, new);
        assert!(error.message.contains(message), "{error}");
        assert!(
            !error.fix.is_empty() && !error.to_string().contains('\n'),
            "{error}"
        );
    }
}

#[test]
fn fast_flash_needs_a_translation_layer() {
    let cleaning = "[cleaning]\npages_per_block = 16\nerase_us = 2000\nspare_share = 0.28\n";
    let slc = "[slc_cache]\nsize_mb = 1\nprogram_us = 100\nidle_ms = 1\n";
    let text = flash_text(&[(cleaning, slc)]);
    let error = Profile::parse(&text, "bad.toml").expect_err("the profile is bad");
    assert!(
        error
            .message
            .contains("slc_cache needs a translation layer"),
        "{error}"
    );
}
