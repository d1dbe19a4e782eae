//! One linear sector space per role: the positions of its files on their device, as far as requests show
//! them.
//!
//! A call has an offset in a file, a block request a sector of a partition. Both are mapped into one space by the
//! extents of the files (`extents.rs`). A file without any request is put behind the others.

use std::collections::BTreeMap;
use std::ops::Range;

use tierwise_recording::{Block, Call, CallKind, NONE, Role, UNKNOWN};

use crate::index::extents::{self, Extents};
use crate::index::rows::Rows;
use crate::index::sizes::{PAGE_SECTORS, SECTOR_BYTES};

/// Where a role's files are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Region {
    /// Index among the recording's devices, or [`NONE`].
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
pub(crate) struct AddressSpace {
    regions: BTreeMap<Role, Region>,
    /// Of each file: the positions of its parts in the role's space.
    extents: Vec<Extents>,
    /// Of each file: its length in sectors.
    lengths: Vec<u64>,
    /// Role of a partition that holds one only.
    owners: Vec<Option<Role>>,
}

impl AddressSpace {
    pub(crate) fn new(rows: &Rows<'_>) -> Self {
        let sizes = sizes_bytes(rows);
        let extents = extents::extents(rows);
        let owners = owners(rows);
        let mut address_space = Self {
            regions: BTreeMap::new(),
            extents: vec![vec![(0, 0)]; sizes.len()],
            lengths: sizes
                .iter()
                .map(|size| size.div_ceil(SECTOR_BYTES))
                .collect(),
            owners,
        };
        for role in Role::ALL {
            address_space.lay_out(rows, role, &sizes, &extents);
        }
        address_space
    }

    /// A role's position.
    pub(crate) fn region(&self, role: Role) -> Option<&Region> {
        self.regions.get(&role)
    }

    /// Every role that was seen.
    pub(crate) fn regions(&self) -> impl Iterator<Item = (Role, &Region)> {
        self.regions.iter().map(|(role, region)| (*role, region))
    }

    /// Role, first sector and length of the range that a call moves.
    pub(crate) fn of_call(&self, rows: &Rows<'_>, call: &Call) -> Option<(Role, u64, u32)> {
        let role = rows.role(call.file)?;
        let region = self.regions.get(&role)?;
        let offset = if call.offset_bytes == UNKNOWN {
            0
        } else {
            call.offset_bytes
        };
        let first = offset / SECTOR_BYTES;
        let end = (offset.saturating_add(call.size_bytes)).div_ceil(SECTOR_BYTES);
        let sectors = u32::try_from(end - first).unwrap_or(u32::MAX).max(1);
        let sector = extents::locate(&self.extents[call.file as usize], first);
        Some((role, sector % region.sectors.max(1), sectors))
    }

    /// Whether a device holds this role alone.
    pub(crate) fn is_alone(&self, role: Role, device: u32) -> bool {
        self.owners.get(device as usize) == Some(&Some(role))
    }

    /// First sector and end of a file in its role's space, including any gaps between its parts.
    pub(crate) fn range_of(&self, file: u32) -> (u64, u64) {
        let ranges = self.ranges_of(file, 0).into_iter();
        ranges.reduce(cover).unwrap_or((0, 0))
    }

    /// First sector and length of each range of a file that a call deletes or shortens, in its role's space.
    pub(crate) fn cut_by(&self, call: &Call) -> Vec<(u64, u32)> {
        let from = if call.offset_bytes == UNKNOWN {
            0
        } else {
            call.offset_bytes / SECTOR_BYTES
        };
        let ranges = self.ranges_of(call.file, from).into_iter();
        ranges
            .map(|(sector, end)| (sector, u32::try_from(end - sector).unwrap_or(u32::MAX)))
            .collect()
    }

    /// First sector and end of each range of a file in its role's space, from a sector of the file on.
    fn ranges_of(&self, file: u32, from: u64) -> Vec<(u64, u64)> {
        let length = self.lengths.get(file as usize).copied().unwrap_or(0);
        match self.extents.get(file as usize) {
            Some(extents) if from < length => extents::ranges(extents, from, length),
            _ => Vec::new(),
        }
    }

    /// Role and sector in its space of a block request; a file system's own requests belong to a partition's
    /// only role.
    pub(crate) fn of_block(&self, rows: &Rows<'_>, block: &Block) -> Option<(Role, u64)> {
        let owner = || self.owners.get(block.device as usize).copied().flatten();
        let role = rows.role(block.file).or_else(owner)?;
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

    fn lay_out(&mut self, rows: &Rows<'_>, role: Role, sizes: &[u64], extents: &[Extents]) {
        let files: Vec<usize> = (0..sizes.len())
            .filter(|&file| rows.role(file as u32) == Some(role))
            .collect();
        if files.is_empty() {
            return;
        }
        let device = device_of_most(rows, &files, sizes);
        let (low, high) = self.extent(rows, role, device, &files, sizes, extents);
        let mut next = high - low;
        let mut used = 0;
        for &file in &files {
            let sectors = sizes[file].div_ceil(SECTOR_BYTES);
            used += sectors;
            let known = &extents[file];
            self.extents[file] = if known.is_empty() || rows.device_of(file as u32) != device {
                let base = next;
                next += sectors.next_multiple_of(8);
                vec![(0, base)]
            } else {
                let place = |&(first, start): &(u64, u64)| (first, start.saturating_sub(low));
                known.iter().map(place).collect()
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
        rows: &Rows<'_>,
        role: Role,
        device: u32,
        files: &[usize],
        sizes: &[u64],
        extents: &[Extents],
    ) -> (u64, u64) {
        let placed = files
            .iter()
            .filter(|&&f| rows.device_of(f as u32) == device);
        let mut range = placed
            .filter(|&&f| !extents[f].is_empty())
            .flat_map(|&f| extents::ranges(&extents[f], 0, sizes[f].div_ceil(SECTOR_BYTES).max(1)))
            .reduce(cover);
        let alone = self.is_alone(role, device);
        for block in rows.recording.blocks.iter().filter(|b| b.device == device) {
            let ours = rows.role(block.file) == Some(role) || (alone && block.file == NONE);
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
fn sizes_bytes(rows: &Rows<'_>) -> Vec<u64> {
    let files = &rows.recording.files;
    let mut sizes: Vec<u64> = files.iter().map(|file| file.size_bytes).collect();
    for call in &rows.recording.calls {
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

/// The device that holds most of these files' bytes.
fn device_of_most(rows: &Rows<'_>, files: &[usize], sizes: &[u64]) -> u32 {
    let mut bytes: BTreeMap<u32, u64> = BTreeMap::new();
    for &file in files {
        let all = bytes.entry(rows.device_of(file as u32)).or_default();
        *all = all.saturating_add(sizes[file].max(1));
    }
    let most = bytes.into_iter().max_by_key(|&(_, bytes)| bytes);
    most.map_or(NONE, |(device, _)| device)
}

/// The role of each device that holds a single role.
fn owners(rows: &Rows<'_>) -> Vec<Option<Role>> {
    let devices = &rows.recording.about.devices;
    let mut roles: Vec<Vec<Role>> = devices.iter().map(|device| device.roles.clone()).collect();
    for file in &rows.recording.files {
        if let (Some(role), Some(seen)) = (file.role, roles.get_mut(file.device as usize))
            && !seen.contains(&role)
        {
            seen.push(role);
        }
    }
    let only = |roles: Vec<Role>| (roles.len() == 1).then(|| roles[0]);
    roles.into_iter().map(only).collect()
}

/// The pages that contain these sectors.
pub(crate) fn pages_of(sector: u64, sectors: u32) -> Range<u64> {
    let end = sector.saturating_add(u64::from(sectors));
    sector / PAGE_SECTORS..end.div_ceil(PAGE_SECTORS)
}
