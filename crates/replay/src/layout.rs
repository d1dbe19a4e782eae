//! Where each role lies: which device, and from which sector on.

use tierwise_device::Profile;
use tierwise_recording::Role;
use tierwise_work::RecordedDevice;

use crate::program::Program;
use crate::{ReplayError, Scenario};

/// A role's place.
#[derive(Clone, Copy, Debug, Default)]
struct Area {
    device: usize,
    first_sector: u64,
    sectors: u64,
    /// Whether a flush means work on its device.
    write_cache: bool,
    /// Whether it did where it was recorded.
    recorded_cache: bool,
}

/// The places of all roles.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    areas: [Area; Role::ALL.len()],
}

/// Space that a role gets on a device it was not recorded on, if nothing says how much it used: 128 MiB.
const UNKNOWN_SECTORS: u64 = 1 << 18;
/// Sectors beyond which there is no device.
const MOST_SECTORS: u64 = 1 << 50;

impl Layout {
    /// Lays roles out: one that stays keeps its place; one that moves is put behind those that are there, in the
    /// order of roles.
    pub(crate) fn new(program: &Program, scenario: &Scenario) -> Result<Self, ReplayError> {
        let mut layout = Self {
            areas: Default::default(),
        };
        let mut ends = vec![0; scenario.devices.len()];
        let recorded = |role| recorded_area(&program.devices, role);
        let stays = |role| match target(scenario, role) {
            None => true,
            Some(device) => {
                scenario.devices[device].is_none()
                    && recorded(role).is_some_and(|area| area.device == device)
            }
        };
        for role in Role::ALL.into_iter().filter(|role| stays(*role)) {
            let Some(area) = recorded(role) else { continue };
            layout.areas[role as usize] = area;
            ends[area.device] = ends[area.device].max(area.first_sector + area.sectors);
        }
        for role in Role::ALL {
            if stays(role) && recorded(role).is_some() {
                continue;
            }
            let device = target(scenario, role).unwrap_or(0);
            let sectors = footprint(program, role);
            layout.areas[role as usize] = Area {
                device,
                first_sector: ends[device],
                sectors,
                write_cache: write_cache(program, scenario, device),
                recorded_cache: recorded(role).is_some_and(|area| area.recorded_cache),
            };
            ends[device] += sectors;
        }
        layout.check(scenario, &ends)?;
        Ok(layout)
    }

    fn check(&self, scenario: &Scenario, ends: &[u64]) -> Result<(), ReplayError> {
        for (profile, end) in scenario.devices.iter().zip(ends) {
            let Some(profile) = profile else { continue };
            if profile.capacity_bytes() / 512 < *end {
                return Err(ReplayError::new(
                    format!(
                        "{} holds {:.1} GB; the roles placed on it take {:.1} GB",
                        profile.name(),
                        profile.capacity_bytes() as f64 / 1e9,
                        *end as f64 * 512.0 / 1e9
                    ),
                    "place fewer roles on it, or take a larger device",
                ));
            }
        }
        Ok(())
    }

    pub(crate) fn device(&self, role: Role) -> usize {
        self.areas[role as usize].device
    }

    /// The size of a role's own space.
    pub(crate) fn sectors(&self, role: Role) -> u64 {
        self.areas[role as usize].sectors
    }

    /// The sector of the device, and as many of the sectors as are in one piece with it.
    pub(crate) fn place(&self, role: Role, sector: u64, sectors: u32) -> (u64, u32) {
        let area = &self.areas[role as usize];
        let offset = sector % area.sectors;
        let part = u64::from(sectors).min(area.sectors - offset);
        (area.first_sector + offset, part as u32)
    }

    /// Flushes of a sync that did `recorded` where it was recorded.
    pub(crate) fn flushes(&self, role: Role, recorded: u32, journal: bool) -> u32 {
        let area = &self.areas[role as usize];
        match (area.write_cache, area.recorded_cache) {
            (false, _) => 0,
            (true, true) => recorded,
            (true, false) => recorded.max(1 + u32::from(journal)),
        }
    }
}

fn target(scenario: &Scenario, role: Role) -> Option<usize> {
    let named = scenario
        .placement
        .iter()
        .rev()
        .find(|placed| placed.0 == role);
    named.map(|placed| placed.1)
}

fn recorded_area(devices: &[RecordedDevice], role: Role) -> Option<Area> {
    devices.iter().enumerate().find_map(|(device, recorded)| {
        let found = recorded.roles.iter().find(|place| place.0 == role)?;
        Some(Area {
            device,
            first_sector: found.1.min(MOST_SECTORS),
            sectors: found.2.clamp(8, MOST_SECTORS),
            write_cache: recorded.write_cache,
            recorded_cache: recorded.write_cache,
        })
    })
}

fn write_cache(program: &Program, scenario: &Scenario, device: usize) -> bool {
    match scenario.devices.get(device) {
        Some(Some(profile)) => Profile::write_cache(profile),
        _ => program
            .devices
            .get(device)
            .is_some_and(|device| device.write_cache),
    }
}

fn footprint(program: &Program, role: Role) -> u64 {
    let known = program.work.footprints.iter().find(|known| known.0 == role);
    let sectors = known.map_or(UNKNOWN_SECTORS, |known| known.1);
    sectors.clamp(8, MOST_SECTORS).next_multiple_of(8)
}
