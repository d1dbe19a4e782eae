//! Profiles that are like others, and prices.

use std::collections::BTreeMap;

use tierwise_device::{Library, Profile, ProfileError};

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
    let library = Library::new(BTreeMap::from([
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
