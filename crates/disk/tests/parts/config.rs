//! What a server refuses to be told.

use tierwise_disk::{ServerConfig, WriteCache};

fn config(partitions: &str) -> Result<ServerConfig, String> {
    let text = format!(
        r#"{{"name": "d", "mount": "/m", "socket": "/s", "profile": "", "profile_file": "p.toml", "seed": 1,
            "path_us": 12, "spin_us": 60, "library": {{}}, "precondition": "fresh", "lies_about_flush": false,
            "write_back_s": 2, "partitions": [{partitions}]}}"#
    );
    ServerConfig::parse(&text).map_err(|error| error.to_string())
}

#[test]
fn sizes_are_positive_multiples_of_a_block() {
    assert!(config(r#"{"name": "log", "size_bytes": 8192}"#).is_ok());
    for size in [0, 1, 512, 4097] {
        let error = config(&format!(r#"{{"name": "log", "size_bytes": {size}}}"#))
            .expect_err("a wrong size");
        assert!(
            error.contains("\"log\"") && error.contains(&size.to_string()),
            "{error}"
        );
    }
}

#[test]
fn unknown_fields_are_named() {
    let error =
        config(r#"{"name": "log", "size_bytes": 8192, "size": 1}"#).expect_err("an unknown field");
    assert!(error.contains("`size`"), "{error}");
}

#[test]
fn partitions_must_fit_the_device() {
    let config = config(r#"{"name": "a", "size_bytes": 8192}, {"name": "b", "size_bytes": 4096}"#)
        .expect("valid");
    assert!(config.require_fit(24).is_ok());
    let error = config
        .require_fit(23)
        .expect_err("one sector too few")
        .to_string();
    assert!(
        error.contains("12288") && error.contains("11776"),
        "{error}"
    );
}

#[test]
fn a_device_without_a_volatile_cache_cannot_lie() {
    let mut config = config(r#"{"name": "log", "size_bytes": 8192}"#).expect("valid");
    let profile = |cache: &str| {
        let text = include_str!("../../../../python/tierwise/data/devices/hdd-7k2.toml");
        let text = text.replace("write_cache = false", cache);
        tierwise_device::Profile::parse(&text, "disk.toml").expect("a valid profile")
    };
    let (safe, volatile) = (
        profile("write_cache = false"),
        profile("write_cache = true"),
    );
    assert_eq!(config.write_cache(&safe).expect("valid"), WriteCache::Safe);
    assert_eq!(
        config.write_cache(&volatile).expect("valid"),
        WriteCache::Volatile
    );
    config.lies_about_flush = true;
    assert_eq!(
        config.write_cache(&volatile).expect("valid"),
        WriteCache::Lying
    );
    let error = config.write_cache(&safe).expect_err("no cache").to_string();
    assert!(
        error.contains("disk has no volatile write cache"),
        "{error}"
    );
}
