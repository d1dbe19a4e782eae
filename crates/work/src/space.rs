//! One linear space of sectors for each role: where its files lie on their device, as far as requests tell.
//!
//! A call knows an offset in a file, a block request a sector of a partition. Both are put into one space by
//! the place of each file: learnt from requests that a call of known offset caused, else from the file's
//! lowest request; a file without any lies behind the others.

use std::collections::BTreeMap;

use tierwise_recording::{Block, Call, CallKind, NONE, Role, UNKNOWN};

use crate::view::View;

/// Bytes of a sector.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// Where a role's files are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Region {
    /// Index in the recording's devices, or [`NONE`].
    pub(crate) device: u32,
    /// Sector of the partition that is the role's sector 0.
    pub(crate) origin: u64,
    /// Length of the space.
    pub(crate) sectors: u64,
    /// Sectors that files use.
    pub(crate) used: u64,
}

/// Every role's space.
#[derive(Clone, Debug, Default)]
pub(crate) struct Space {
    regions: BTreeMap<Role, Region>,
    /// Of each file: the role's sector at which it begins.
    bases: Vec<u64>,
    /// Role of a partition that holds one only.
    owners: Vec<Option<Role>>,
}

impl Space {
    pub(crate) fn new(view: &View<'_>) -> Self {
        let sizes = sizes_bytes(view);
        let starts = starts(view);
        let owners = owners(view);
        let mut space = Self {
            regions: BTreeMap::new(),
            bases: vec![0; sizes.len()],
            owners,
        };
        for role in Role::ALL {
            space.lay_out(view, role, &sizes, &starts);
        }
        space
    }

    /// A role's place.
    pub(crate) fn region(&self, role: Role) -> Option<&Region> {
        self.regions.get(&role)
    }

    /// Every role that was seen.
    pub(crate) fn regions(&self) -> impl Iterator<Item = (Role, &Region)> {
        self.regions.iter().map(|(role, region)| (*role, region))
    }

    /// Role, first sector and length of what a call moves.
    pub(crate) fn of_call(&self, view: &View<'_>, call: &Call) -> Option<(Role, u64, u32)> {
        let role = view.role(call.file)?;
        let region = self.regions.get(&role)?;
        let offset = if call.offset_bytes == UNKNOWN {
            0
        } else {
            call.offset_bytes
        };
        let first = offset / SECTOR_BYTES;
        let end = (offset.saturating_add(call.size_bytes)).div_ceil(SECTOR_BYTES);
        let sectors = u32::try_from(end - first).unwrap_or(u32::MAX).max(1);
        let sector = self.bases[call.file as usize].saturating_add(first);
        Some((role, sector % region.sectors.max(1), sectors))
    }

    /// Role and sector in its space of a block request; a file system's own belong to a partition's only role.
    pub(crate) fn of_block(&self, view: &View<'_>, block: &Block) -> Option<(Role, u64)> {
        let owner = || self.owners.get(block.device as usize).copied().flatten();
        let role = view.role(block.file).or_else(owner)?;
        Some((role, self.sector_of(role, block)?))
    }

    /// Sector of a block request in the space of a role on the same device.
    pub(crate) fn sector_of(&self, role: Role, block: &Block) -> Option<u64> {
        let region = self.regions.get(&role)?;
        if block.sector == UNKNOWN {
            return None;
        }
        let distance = block.sector.wrapping_sub(region.origin);
        Some(distance % region.sectors.max(1))
    }

    fn lay_out(&mut self, view: &View<'_>, role: Role, sizes: &[u64], starts: &[Option<u64>]) {
        let files: Vec<usize> = (0..sizes.len())
            .filter(|&file| view.role(file as u32) == Some(role))
            .collect();
        if files.is_empty() {
            return;
        }
        let device = device_of_most(view, &files, sizes);
        let (low, high) = self.extent(view, role, device, &files, sizes, starts);
        let mut next = high - low;
        let mut used = 0;
        for &file in &files {
            let sectors = sizes[file].div_ceil(SECTOR_BYTES);
            used += sectors;
            self.bases[file] = match starts[file] {
                Some(start) if view.device_of(file as u32) == device => start - low,
                _ => {
                    let base = next;
                    next += sectors.next_multiple_of(8);
                    base
                }
            };
        }
        self.regions.insert(
            role,
            Region {
                device,
                origin: low,
                sectors: next.max(8),
                used,
            },
        );
    }

    /// Lowest and highest sector of a role on its device, journal included where the partition is its own.
    fn extent(
        &self,
        view: &View<'_>,
        role: Role,
        device: u32,
        files: &[usize],
        sizes: &[u64],
        starts: &[Option<u64>],
    ) -> (u64, u64) {
        let placed = files
            .iter()
            .filter(|&&f| view.device_of(f as u32) == device);
        let mut range = placed
            .filter_map(|&f| starts[f].map(|s| (s, s + sizes[f].div_ceil(SECTOR_BYTES))))
            .reduce(cover);
        let alone = self.owners.get(device as usize) == Some(&Some(role));
        for block in view.recording.blocks.iter().filter(|b| b.device == device) {
            let ours = view.role(block.file) == Some(role) || (alone && block.file == NONE);
            if ours && block.sector != UNKNOWN && block.sectors > 0 {
                let this = (block.sector, block.sector + u64::from(block.sectors));
                range = Some(range.map_or(this, |range| cover(range, this)));
            }
        }
        range.unwrap_or((0, 0))
    }
}

fn cover(a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
    (a.0.min(b.0), a.1.max(b.1))
}

/// Size of each file, at least up to where it was used.
fn sizes_bytes(view: &View<'_>) -> Vec<u64> {
    let files = &view.recording.files;
    let mut sizes: Vec<u64> = files.iter().map(|file| file.size_bytes).collect();
    for call in &view.recording.calls {
        let moves = matches!(call.kind, CallKind::Read | CallKind::Write);
        if moves
            && call.offset_bytes != UNKNOWN
            && let Some(size) = sizes.get_mut(call.file as usize)
        {
            *size = (*size).max(call.offset_bytes.saturating_add(call.size_bytes));
        }
    }
    sizes
}

/// Sector of its partition where each file begins, as far as its requests tell.
fn starts(view: &View<'_>) -> Vec<Option<u64>> {
    let mut starts: Vec<Option<(bool, u64)>> = vec![None; view.recording.files.len()];
    for block in &view.recording.blocks {
        let Some(known) = starts.get_mut(block.file as usize) else {
            continue;
        };
        if block.sector == UNKNOWN || block.sectors == 0 {
            continue;
        }
        let call = view.call_at(block.thread, block.issued_ns);
        let offset = call
            .filter(|call| call.file == block.file && call.offset_bytes != UNKNOWN)
            .map(|call| call.offset_bytes / SECTOR_BYTES);
        let start = block.sector.saturating_sub(offset.unwrap_or(0));
        let better = known.is_none_or(|(exact, best)| {
            (offset.is_some() && !exact) || (offset.is_some() == exact && start < best)
        });
        if better {
            *known = Some((offset.is_some(), start));
        }
    }
    starts
        .into_iter()
        .map(|s| s.map(|(_, start)| start))
        .collect()
}

/// The device that holds most of these files' bytes.
fn device_of_most(view: &View<'_>, files: &[usize], sizes: &[u64]) -> u32 {
    let mut bytes: BTreeMap<u32, u64> = BTreeMap::new();
    for &file in files {
        *bytes.entry(view.device_of(file as u32)).or_default() += sizes[file].max(1);
    }
    let most = bytes.into_iter().max_by_key(|&(_, bytes)| bytes);
    most.map_or(NONE, |(device, _)| device)
}

/// The only role on each device, if it holds one only.
fn owners(view: &View<'_>) -> Vec<Option<Role>> {
    let devices = &view.recording.about.devices;
    let mut roles: Vec<Vec<Role>> = devices.iter().map(|device| device.roles.clone()).collect();
    for file in &view.recording.files {
        if let (Some(role), Some(seen)) = (file.role, roles.get_mut(file.device as usize))
            && !seen.contains(&role)
        {
            seen.push(role);
        }
    }
    let only = |roles: Vec<Role>| (roles.len() == 1).then(|| roles[0]);
    roles.into_iter().map(only).collect()
}
