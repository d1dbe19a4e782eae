//! Confines a thread, and all that it starts from then on, to the files that it needs, by the kernel's
//! Landlock.
//!
//! A stranger's workload runs in such a thread. It can open no other file and no TCP connection, and signal
//! no process outside. Which of these the kernel refuses depends on its version; see landlock(7).

use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

/// The newest rules asked for; an older kernel enforces those that it knows.
const RULES: ABI = ABI::V6;

/// The kernel refused the rules.
#[derive(Debug, thiserror::Error)]
#[error("landlock: {0}")]
pub struct ConfineError(#[from] RulesetError);

/// Confine the calling thread, for good, to files below these directories. Missing directories are left out.
/// Returns whether any rule is enforced: none is where this kernel has no Landlock, or it is switched off.
///
/// # Errors
/// If the kernel knows the rules and refuses them.
pub fn confine(readable: &[PathBuf], writable: &[PathBuf]) -> Result<bool, ConfineError> {
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(RULES))?
        .handle_access(AccessNet::from_all(RULES))?
        .scope(Scope::from_all(RULES))?
        .create()?
        .add_rules(path_beneath_rules(readable, AccessFs::from_read(RULES)))?
        .add_rules(path_beneath_rules(writable, AccessFs::from_all(RULES)))?
        .restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;
    use std::thread;

    use super::*;

    #[test]
    fn only_what_is_named_can_be_read_and_written() {
        let outer = tempfile::tempdir().unwrap();
        let at = |name: &str| outer.path().join(name);
        for name in ["read", "write"] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("file"), name).unwrap();
        }
        fs::write(at("secret"), "secret").unwrap();
        let paths = (at("read"), at("write"), at("secret"));
        // On a thread of its own: a thread that is confined stays so.
        let done = thread::spawn(move || {
            let (read, write, secret) = paths;
            let readable = [read.clone(), read.join("absent")];
            let enforced = confine(&readable, std::slice::from_ref(&write)).unwrap();
            assert_eq!(enforced, fs::read(&secret).is_err());
            if !enforced {
                // This kernel has no Landlock.
                return;
            }
            assert_eq!(fs::read_to_string(read.join("file")).unwrap(), "read");
            fs::write(write.join("new"), "new").unwrap();
            for refused in [
                fs::read(&secret).map(drop),
                fs::write(&secret, "changed"),
                fs::write(read.join("file"), "changed"),
                fs::rename(&secret, write.join("secret")),
            ] {
                let kind = refused.unwrap_err().kind();
                assert!(matches!(
                    kind,
                    ErrorKind::PermissionDenied | ErrorKind::CrossesDevices
                ));
            }
        });
        done.join().unwrap();
        assert_eq!(fs::read_to_string(at("secret")).unwrap(), "secret");
    }
}
