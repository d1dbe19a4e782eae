//! Where each role lies: its device and its first sector there.

use tierwise_device::Profile;
use tierwise_recording::Role;
use tierwise_work::{Mechanism, Partition};

use crate::api::error::ReplayError;
use crate::api::scenario::Scenario;
use crate::program::prepared::Program;

/// Where a role lies.
#[derive(Clone, Copy, Debug, Default)]
struct Area {
    device: usize,
    first_sector: u64,
    sectors: u64,
    /// Whether its device has a volatile write cache, so that flushes do work.
    write_cache: bool,
    /// Whether the recorded device had one.
    recorded_cache: bool,
    /// Read-ahead size in sectors; 0 if unknown.
    read_ahead: u32,
    /// Whether that differs from the recording.
    read_ahead_differs: bool,
}

/// Where all roles lie.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    areas: [Area; Role::ALL.len()],
    /// Of each device: the first sector behind its roles.
    ends: Vec<u64>,
}

/// Space of a role on a new device if its footprint is unknown: 128 MiB.
const DEFAULT_SECTORS: u64 = 1 << 18;
/// Default read-ahead (`read_ahead_kb`): 128 KiB, in sectors.
const DEFAULT_READ_AHEAD: u64 = 256;
/// No device has more sectors.
pub(crate) const MAX_SECTORS: u64 = 1 << 50;

impl Layout {
    /// Lays out roles. A role that stays keeps its place. A role that moves lies behind those already there, in the
    /// order of partitions; with its whole partition if it had one of its own and the device has room.
    /// `starts`: of each device, the first sector that no other database uses.
    pub(crate) fn new(
        program: &Program,
        scenario: &Scenario,
        starts: Vec<u64>,
    ) -> Result<Self, ReplayError> {
        let mut layout = Self {
            areas: Default::default(),
            ends: Vec::new(),
        };
        let mut ends = starts;
        let recorded = |role| recorded_area(program, role);
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
        let moved = moving_roles(program, |role| stays(role) && recorded(role).is_some());
        let with_partitions = partitions_fit(program, scenario, &moved, &ends);
        for role in moved {
            let device = target(scenario, role).unwrap_or(0);
            let (before, sectors, room) = match partition(program, role) {
                Some(found) if with_partitions && !program.is_off(Mechanism::Partitions) => {
                    let own = recorded(role).map_or(0, |area| area.sectors);
                    (found.before, own.clamp(8, MAX_SECTORS), found.sectors)
                }
                _ => (0, footprint(program, role), footprint(program, role)),
            };
            let ahead = read_ahead(program, scenario, role, device);
            layout.areas[role as usize] = Area {
                device,
                first_sector: ends[device] + before,
                sectors,
                // A loop device passes flushes on to whatever is behind it.
                write_cache: scenario.live.is_some() || write_cache(program, scenario, device),
                recorded_cache: recorded(role).is_some_and(|area| area.recorded_cache),
                read_ahead: ahead,
                read_ahead_differs: ahead != recorded_read_ahead(program, role)
                    && !program.is_off(Mechanism::ReadAheadWindows),
            };
            ends[device] += room;
        }
        layout.ends = ends;
        layout.check(scenario)?;
        Ok(layout)
    }

    fn check(&self, scenario: &Scenario) -> Result<(), ReplayError> {
        for (profile, end) in scenario.devices.iter().zip(&self.ends) {
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

    /// Read-ahead size in sectors.
    pub(crate) fn read_ahead(&self, role: Role) -> u64 {
        match self.areas[role as usize].read_ahead {
            0 => DEFAULT_READ_AHEAD,
            sectors => sectors.into(),
        }
    }

    /// Whether read-ahead differs from the recording.
    pub(crate) fn read_ahead_differs(&self, role: Role) -> bool {
        self.areas[role as usize].read_ahead_differs
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

fn target(scenario: &Scenario, role: Role) -> Option<usize> {
    let named = scenario
        .placement
        .iter()
        .rev()
        .find(|placed| placed.0 == role);
    named.map(|placed| placed.1)
}

/// Where a role lay; limited to its device's capacity where a profile gives it.
fn recorded_area(program: &Program, role: Role) -> Option<Area> {
    program
        .devices
        .iter()
        .enumerate()
        .find_map(|(device, recorded)| {
            let found = recorded.roles.iter().find(|place| place.0 == role)?;
            let profile = program.profiles.get(device).and_then(Option::as_ref);
            let end = profile.map_or(2 * MAX_SECTORS, |known| known.capacity_bytes() / 512);
            let first_sector = found.1.min(MAX_SECTORS).min(end.saturating_sub(8));
            Some(Area {
                device,
                first_sector,
                sectors: found.2.clamp(8, MAX_SECTORS).min(end - first_sector),
                write_cache: recorded.write_cache,
                recorded_cache: recorded.write_cache,
                read_ahead: recorded_read_ahead(program, role),
                read_ahead_differs: false,
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

/// Roles that move, in the order of their recorded partitions.
fn moving_roles(program: &Program, stays: impl Fn(Role) -> bool) -> Vec<Role> {
    let mut moved: Vec<Role> = Role::ALL.into_iter().filter(|role| !stays(*role)).collect();
    moved
        .sort_by_key(|role| partition(program, *role).map_or(u64::MAX, |found| found.first_sector));
    moved
}

fn partition(program: &Program, role: Role) -> Option<&Partition> {
    let mut known = program.work.partitions.iter();
    known.find(|found| found.role == role && found.sectors.max(found.before) <= MAX_SECTORS)
}

/// Whether the devices have room for the whole partitions of roles that move.
fn partitions_fit(program: &Program, scenario: &Scenario, moved: &[Role], ends: &[u64]) -> bool {
    let mut ends = ends.to_vec();
    for role in moved {
        let room = partition(program, *role).map_or(DEFAULT_SECTORS, |found| found.sectors);
        ends[target(scenario, *role).unwrap_or(0)] += room;
    }
    let mut devices = scenario.devices.iter().zip(ends);
    devices.all(|(profile, end)| {
        profile
            .as_ref()
            .is_none_or(|profile| end <= profile.capacity_bytes() / 512)
    })
}

/// Read-ahead of a role on its new device; as recorded where unknown.
fn read_ahead(program: &Program, scenario: &Scenario, role: Role, device: usize) -> u32 {
    let recorded = recorded_read_ahead(program, role);
    let Some(Some(profile)) = scenario.devices.get(device) else {
        return recorded;
    };
    let (still, moving) = program.work.read_ahead_by_device;
    let now = if profile.is_rotating() { moving } else { still };
    if recorded == 0 || now == 0 {
        recorded
    } else {
        now
    }
}

/// Recorded read-ahead; 0 if unknown or past the page cache.
fn recorded_read_ahead(program: &Program, role: Role) -> u32 {
    let mut known = program.work.read_ahead.iter();
    known
        .find(|known| known.0 == role)
        .map_or(0, |known| known.1)
}

fn footprint(program: &Program, role: Role) -> u64 {
    let known = program.work.footprints.iter().find(|known| known.0 == role);
    let sectors = known.map_or(DEFAULT_SECTORS, |known| known.1);
    sectors.clamp(8, MAX_SECTORS).next_multiple_of(8)
}
