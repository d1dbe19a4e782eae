//! The profiles that ship with tierwise.

use tierwise_device::Profile;

/// A shipped profile by its name.
pub fn profile(name: &str) -> Profile {
    let file = format!(
        "{}/../../python/tierwise/profiles/{name}.toml",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(&file).expect("a shipped profile");
    Profile::parse(&text, &file).expect("a valid profile")
}
