//! What a profile of an array may say, and what it says of the whole.

use crate::array_support::{array, controller, parse, text};
use tierwise_device::Profile;

fn refusal(text: &str) -> String {
    parse(text).expect_err("a bad profile").message
}

#[test]
fn bad_arrays_are_refused_by_name() {
    let bad = |member, level, members, more: &str| refusal(&text(member, level, members, more));
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
            bad(
                "small-ram",
                "raid1",
                2,
                "rebuild_mb_per_s = 5\nrebuild_priority = 0.5\n",
            ),
            "rebuild_mb_per_s without a failed member",
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
