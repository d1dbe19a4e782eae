//! The description of a recording, without what the bursts tell.

use std::collections::BTreeSet;

use chrono::{SecondsFormat, Utc};
use tierwise_recording::{About, Role};

use crate::database::settings;
use crate::database::target::Target;
use crate::host::devices::Devices;
use crate::host::machine;

/// What is known when a recording begins. The engine's version, settings and counters need a connection to it.
pub fn prepared(target: &Target) -> About {
    About {
        started_at: Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true),
        tierwise: env!("CARGO_PKG_VERSION").to_owned(),
        engine: target.rules.engine.clone(),
        engine_version: target.server().version,
        settings: settings::settings_of(target.pid, &target.rules, &target.root),
        machine: machine::describe(target.pid),
        warnings: target.rules.warnings(true),
        ..About::default()
    }
}

/// Warnings that only the recorder can give and every use of the recording must repeat; free of names.
pub fn warnings_of(devices: &Devices) -> Vec<String> {
    let used: Vec<_> = devices
        .known
        .iter()
        .filter(|device| !device.roles().is_empty())
        .collect();
    if used.is_empty() {
        return vec!["no file of the database lies on a block device".to_owned()];
    }
    let nowhere = devices.without.iter().map(|(kind, roles)| {
        let roles = listed(roles);
        format!("files of {roles} lie on {kind}, which tierwise knows no block device of")
    });
    let of_device = used.into_iter().filter_map(|device| {
        let roles = listed(device.roles());
        if let Some(kind) = device.untold() {
            return Some(format!(
                "requests for {roles} are not recorded: the kernel tells none to {kind}, and what is below it has \
                 other sectors"
            ));
        }
        let kind = &device.first_link()?.kind;
        (!device.tells_places()).then(|| {
            format!(
                "requests for {roles} may be counted for wrong files: {kind} does not tell where a file lies"
            )
        })
    });
    nowhere.chain(of_device).collect()
}

fn listed(roles: &BTreeSet<Role>) -> String {
    let names: Vec<_> = roles.iter().map(|role| role.name()).collect();
    names.join(", ")
}
