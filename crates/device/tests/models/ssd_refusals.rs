//! Profiles of SSDs that cannot be: refused with the key and what is allowed.

use crate::flash;
use tierwise_device::{Profile, ProfileError};

fn refusal(old: &str, new: &str) -> ProfileError {
    let text = flash::text(&[(old, new)]);
    Profile::parse(&text, "bad.toml").expect_err("the profile is bad")
}

#[test]
fn impossible_flash_is_refused() {
    let slc = "[slc_cache]\nsize_mb = 1\nfull_size_mb = 2\nprogram_us = 100\nidle_ms = 1\nwhen_full = \"direct\"\n[source]\nslc_cache = \"made for the test\"";
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
        ("[source]", slc, "slc_cache.full_size_mb is above"),
    ];
    for (old, new, message) in lists {
        let error = refusal(old, new);
        assert!(error.message.contains(message), "{error}");
        assert!(
            !error.fix.is_empty() && !error.to_string().contains('\n'),
            "{error}"
        );
    }
}

#[test]
fn fast_flash_needs_a_translation_layer() {
    let slc = "[slc_cache]\nsize_mb = 1\nprogram_us = 100\nidle_ms = 1\nwhen_full = \"direct\"\n[source]\nslc_cache = \"made for the test\"";
    let text = flash::text(&[
        ("[source]", slc),
        ("cleaning = \"made for the test\"\n", ""),
    ]);
    let cleaning = text.find("[cleaning]").expect("the table");
    let next = text.find("[slc_cache]").expect("the table");
    let text = text[..cleaning].to_owned() + &text[next..];
    let error = Profile::parse(&text, "bad.toml").expect_err("the profile is bad");
    assert!(
        error
            .message
            .contains("slc_cache needs a translation layer"),
        "{error}"
    );
}
