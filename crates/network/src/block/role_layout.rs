//! Where each role lies: its device and its first sector there.
//!
//! A role that stays keeps its place. A role that moves lies behind those already on its new device, in the order of
//! the roles, on as many sectors as its files use. Left out: free space between partitions.

use tierwise_device::{Profile, SECTOR_BYTES};
use tierwise_recording::Role;

use crate::api::scenario::Scenario;
use crate::program::Program;
use tierwise_recording::UserError;

/// Space of a role on a new device if its footprint is unknown: 128 MiB.
const DEFAULT_SECTORS: u64 = 1 << 18;
/// No device has more sectors.
pub(crate) const MAX_SECTORS: u64 = 1 << 50;

/// Where a role lies.
#[derive(Clone, Copy, Debug, Default)]
struct RoleArea {
    device: usize,
    first_sector: u64,
    sectors: u64,
    /// Whether its device has a volatile write cache, so that flushes do work.
    write_cache: bool,
    /// Whether the recorded device had one.
    recorded_cache: bool,
}

/// Where all roles lie.
#[derive(Clone, Debug)]
pub(crate) struct RoleLayout {
    areas: [RoleArea; Role::ALL.len()],
    /// Of each device: the first sector behind its roles.
    ends: Vec<u64>,
}

impl RoleLayout {
    /// Lays out roles. `starts`: of each device, the first sector that no other database uses.
    ///
    /// # Errors
    /// A device that is too small.
    pub(crate) fn new(
        program: &Program,
        scenario: &Scenario,
        starts: Vec<u64>,
    ) -> Result<Self, UserError> {
        let mut layout = Self {
            areas: Default::default(),
            ends: starts,
        };
        let mut moved = Vec::new();
        for role in Role::ALL {
            let device = target_device(scenario, role);
            let recorded = recorded_area(program, role);
            let stays = |area: &RoleArea| {
                device.is_none_or(|device| {
                    device == area.device && scenario.devices[device].is_none()
                })
            };
            match recorded.filter(stays) {
                Some(area) => {
                    let end = &mut layout.ends[area.device];
                    *end = (*end).max(area.first_sector + area.sectors);
                    layout.areas[role as usize] = area;
                }
                None => moved.push((role, device.unwrap_or(0), recorded)),
            }
        }
        for (role, device, recorded) in moved {
            let sectors = role_sectors(program, role);
            layout.areas[role as usize] = RoleArea {
                device,
                first_sector: layout.ends[device],
                sectors,
                write_cache: (scenario.emulated && scenario.emulated_flushes)
                    || has_write_cache(program, scenario, device),
                recorded_cache: recorded.is_some_and(|area| area.recorded_cache),
            };
            layout.ends[device] += sectors;
        }
        layout.check(scenario)?;
        Ok(layout)
    }

    fn check(&self, scenario: &Scenario) -> Result<(), UserError> {
        for (profile, end) in scenario.devices.iter().zip(&self.ends) {
            let Some(profile) = profile else { continue };
            if profile.capacity_bytes() / SECTOR_BYTES < *end {
                return Err(UserError::new(
                    format!(
                        "{} holds {:.1} GB; the roles placed on it take {:.1} GB",
                        profile.name(),
                        profile.capacity_bytes() as f64 / 1e9,
                        (*end * SECTOR_BYTES) as f64 / 1e9
                    ),
                    "place fewer roles on it, or take a larger device",
                ));
            }
        }
        Ok(())
    }

    /// First sector of a device behind its roles.
    pub(crate) fn end(&self, device: usize) -> u64 {
        self.ends[device]
    }

    pub(crate) fn device(&self, role: Role) -> usize {
        self.areas[role as usize].device
    }

    /// Size of a role, in sectors.
    pub(crate) fn sectors(&self, role: Role) -> u64 {
        self.areas[role as usize].sectors
    }

    /// Sector on the device, and how many of the sectors are contiguous from there.
    pub(crate) fn locate(&self, role: Role, sector: u64, sectors: u32) -> (u64, u32) {
        let area = &self.areas[role as usize];
        let offset = sector % area.sectors;
        let part = u64::from(sectors).min(area.sectors - offset);
        (area.first_sector + offset, part as u32)
    }

    /// Flushes of a sync that had `recorded` flushes on the recorded device.
    pub(crate) fn flushes(&self, role: Role, recorded: u32, journal: bool) -> u32 {
        let area = &self.areas[role as usize];
        match (area.write_cache, area.recorded_cache) {
            (false, _) => 0,
            (true, true) => recorded,
            (true, false) => recorded.max(1 + u32::from(journal)),
        }
    }
}

fn target_device(scenario: &Scenario, role: Role) -> Option<usize> {
    let mut placed = scenario.placement.iter().rev();
    placed
        .find(|placed| placed.0 == role)
        .map(|placed| placed.1)
}

/// Where a role lay; limited to its device's capacity where a profile gives it.
fn recorded_area(program: &Program, role: Role) -> Option<RoleArea> {
    let mut devices = program.work.devices.iter().enumerate();
    devices.find_map(|(device, recorded)| {
        let place = recorded.roles.iter().find(|place| place.0 == role)?;
        let profile = program.profiles.get(device).and_then(Option::as_ref);
        let end = profile.map_or(2 * MAX_SECTORS, |known| {
            known.capacity_bytes() / SECTOR_BYTES
        });
        let first_sector = place.1.min(MAX_SECTORS).min(end.saturating_sub(8));
        Some(RoleArea {
            device,
            first_sector,
            sectors: place.2.clamp(8, MAX_SECTORS).min(end - first_sector),
            write_cache: recorded.write_cache,
            recorded_cache: recorded.write_cache,
        })
    })
}

fn has_write_cache(program: &Program, scenario: &Scenario, device: usize) -> bool {
    match scenario.devices.get(device) {
        Some(Some(profile)) => Profile::write_cache(profile),
        _ => {
            let recorded = program.work.devices.get(device);
            recorded.is_some_and(|device| device.write_cache)
        }
    }
}

fn role_sectors(program: &Program, role: Role) -> u64 {
    let known = program.work.footprints.iter().find(|known| known.0 == role);
    let sectors = known.map_or(DEFAULT_SECTORS, |known| known.1);
    sectors.clamp(8, MAX_SECTORS).next_multiple_of(8)
}
