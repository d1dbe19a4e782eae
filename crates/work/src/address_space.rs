//! One linear sector space per role: the positions of its files on their device, as far as requests show
//! them.
//!
//! A call has an offset in a file, a block request a sector of a partition. Both are mapped into one space by the
//! extents of the files. A file without any request is put behind the others.
//!
//! A read that a thread sent in a call and waited for begins at the call's offset, so it shows that offset's
//! sector. Files are assumed contiguous between two such places; a new extent begins where two places do not
//! fit together.

use std::collections::BTreeMap;
use std::ops::Range;

use tierwise_recording::{Block, BlockOp, Call, CallKind, NONE, Role, StateKind, UNKNOWN};

use crate::SectorRange;
use crate::constants::{AT_ONCE_NS, WOKEN_NS};
use crate::recording_rows::RecordingRows;
use tierwise_recording::{PAGE_SECTORS, SECTOR_BYTES};

const MOST_READ_AHEAD_SECTORS: i128 = 4096;

/// One file's extents: the first file sector of each and its position; none if nothing is known.
type FileExtents = Vec<(u64, u64)>;

/// Where a role's files are.
pub(crate) struct RoleRegion {
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
pub(crate) struct AddressSpace {
    pub(crate) regions: BTreeMap<Role, RoleRegion>,
    /// Of each file: the positions of its parts in the role's space.
    extents: Vec<FileExtents>,
    /// Of each file: its length in sectors.
    lengths: Vec<u64>,
    /// Role of a partition that holds one only.
    owners: Vec<Option<Role>>,
}

impl AddressSpace {
    pub(crate) fn new(rows: &RecordingRows<'_>) -> Self {
        let sizes_bytes = file_sizes_bytes(rows);
        let lengths = sizes_bytes.iter().map(|size| size.div_ceil(SECTOR_BYTES));
        let mut address_space = Self {
            regions: BTreeMap::new(),
            extents: all_file_extents(rows),
            lengths: lengths.collect(),
            owners: role_by_device(rows),
        };
        for role in Role::ALL {
            address_space.lay_out(rows, role, &sizes_bytes);
        }
        address_space
    }

    /// The range that a call moves.
    pub(crate) fn of_call(&self, rows: &RecordingRows<'_>, call: &Call) -> Option<SectorRange> {
        let role = rows.role(call.file)?;
        let region = self.regions.get(&role)?;
        let offset = known_call_offset(call);
        let first = offset / SECTOR_BYTES;
        let end = (offset.saturating_add(call.size_bytes)).div_ceil(SECTOR_BYTES);
        let sectors = u32::try_from(end - first).unwrap_or(u32::MAX).max(1);
        let sector = locate_sector(&self.extents[call.file as usize], first);
        Some((role, sector % region.sectors.max(1), sectors))
    }

    pub(crate) fn is_alone(&self, role: Role, device: u32) -> bool {
        self.owners.get(device as usize) == Some(&Some(role))
    }

    /// First sector and end of a file in its role's space, including any gaps between its parts.
    pub(crate) fn range_of(&self, file: u32) -> (u64, u64) {
        let ranges = self.ranges_of(file, 0).into_iter();
        ranges.reduce(covering_range).unwrap_or((0, 0))
    }

    /// First sector and length of each range of a file that a call deletes or shortens, in its role's space.
    pub(crate) fn cut_by(&self, call: &Call) -> Vec<(u64, u32)> {
        let ranges = self.ranges_of(call.file, known_call_offset(call) / SECTOR_BYTES);
        ranges
            .into_iter()
            .map(|(sector, end)| (sector, u32::try_from(end - sector).unwrap_or(u32::MAX)))
            .collect()
    }

    /// First sector and end of each range of a file in its role's space, from a sector of the file on.
    fn ranges_of(&self, file: u32, from: u64) -> Vec<(u64, u64)> {
        let length = self.lengths.get(file as usize).copied().unwrap_or(0);
        match self.extents.get(file as usize) {
            Some(extents) if from < length => sector_ranges(extents, from, length),
            _ => Vec::new(),
        }
    }

    /// Role and sector in its space of a block request; a file system's own requests belong to a partition's
    /// only role.
    pub(crate) fn of_block(&self, rows: &RecordingRows<'_>, block: &Block) -> Option<(Role, u64)> {
        let owner = || self.owners.get(block.device as usize).copied().flatten();
        let role = rows.role(block.file).or_else(owner)?;
        Some((role, self.sector_of(role, block)?))
    }

    /// Sector of a block request in the space of a role on the same device.
    pub(crate) fn sector_of(&self, role: Role, block: &Block) -> Option<u64> {
        let region = self.regions.get(&role)?;
        let distance = block.sector.wrapping_sub(region.origin);
        (block.sector != UNKNOWN).then(|| distance % region.sectors.max(1))
    }

    /// Moves the extents of a role's files from their device to the role's space.
    fn lay_out(&mut self, rows: &RecordingRows<'_>, role: Role, sizes_bytes: &[u64]) {
        let files: Vec<u32> = (0..self.lengths.len() as u32)
            .filter(|&file| rows.role(file) == Some(role))
            .collect();
        if files.is_empty() {
            return;
        }
        let device = most_used_device(rows, &files, sizes_bytes);
        let (low, high) = self.covered(rows, role, device, &files);
        let mut next = high - low;
        let mut used = 0;
        for file in files {
            let sectors = self.lengths[file as usize];
            used += sectors;
            let extents = &mut self.extents[file as usize];
            if extents.is_empty() || rows.device_of(file) != device {
                *extents = vec![(0, next)];
                next += sectors.next_multiple_of(8);
            } else {
                for (_, start) in extents {
                    *start = start.saturating_sub(low);
                }
            }
        }
        let region = RoleRegion {
            device,
            origin: low,
            sectors: next.max(8),
            used,
        };
        self.regions.insert(role, region);
    }

    /// Lowest and highest sector of a role on its device, journal included where the partition is its own.
    fn covered(
        &self,
        rows: &RecordingRows<'_>,
        role: Role,
        device: u32,
        files: &[u32],
    ) -> (u64, u64) {
        let placed = files
            .iter()
            .map(|&file| (file, &self.extents[file as usize]));
        let mut range = placed
            .filter(|(file, extents)| rows.device_of(*file) == device && !extents.is_empty())
            .flat_map(|(file, extents)| {
                sector_ranges(extents, 0, self.lengths[file as usize].max(1))
            })
            .reduce(covering_range);
        let alone = self.is_alone(role, device);
        for block in rows.recording.blocks.iter().filter(|b| b.device == device) {
            let ours = rows.role(block.file) == Some(role) || (alone && block.file == NONE);
            if ours && block.sector != UNKNOWN && block.sectors > 0 {
                let this = (block.sector, block.sector + u64::from(block.sectors));
                range = Some(range.map_or(this, |range| covering_range(range, this)));
            }
        }
        range.unwrap_or((0, 0))
    }
}

fn covering_range(a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
    (a.0.min(b.0), a.1.max(b.1))
}

fn known_call_offset(call: &Call) -> u64 {
    match call.offset_bytes {
        UNKNOWN => 0,
        offset => offset,
    }
}

/// Size of each file, at least up to where it was used.
fn file_sizes_bytes(rows: &RecordingRows<'_>) -> Vec<u64> {
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

fn most_used_device(rows: &RecordingRows<'_>, files: &[u32], sizes_bytes: &[u64]) -> u32 {
    let mut bytes: BTreeMap<u32, u64> = BTreeMap::new();
    for &file in files {
        let all = bytes.entry(rows.device_of(file)).or_default();
        *all = all.saturating_add(sizes_bytes[file as usize].max(1));
    }
    let most = bytes.into_iter().max_by_key(|&(_, bytes)| bytes);
    most.map_or(NONE, |(device, _)| device)
}

/// The role of each device that holds a single role.
fn role_by_device(rows: &RecordingRows<'_>) -> Vec<Option<Role>> {
    let devices = &rows.recording.about.devices;
    let mut roles: Vec<Vec<Role>> = devices.iter().map(|device| device.roles.clone()).collect();
    for file in &rows.recording.files {
        // Selected files share their device with the role that they were selected from.
        let role = file.role.filter(|role| *role != Role::Selected);
        if let (Some(role), Some(seen)) = (role, roles.get_mut(file.device as usize))
            && !seen.contains(&role)
        {
            seen.push(role);
        }
    }
    let only = |roles: Vec<Role>| (roles.len() == 1).then(|| roles[0]);
    roles.into_iter().map(only).collect()
}

pub(crate) fn role_page_range(sector: u64, sectors: u32) -> Range<u64> {
    let end = sector.saturating_add(u64::from(sectors));
    sector / PAGE_SECTORS..end.div_ceil(PAGE_SECTORS)
}

/// The extents of all files, in sectors of their partitions.
fn all_file_extents(rows: &RecordingRows<'_>) -> Vec<FileExtents> {
    let mut places: Vec<FileExtents> = vec![Vec::new(); rows.recording.files.len()];
    let mut lowest: Vec<Option<u64>> = vec![None; places.len()];
    for block in &rows.recording.blocks {
        let file = block.file as usize;
        if file >= places.len() || block.sector == UNKNOWN || block.sectors == 0 {
            continue;
        }
        let offset = request_file_offset(rows, block);
        let start = block
            .sector
            .saturating_sub(offset.map_or(0, |offset| offset.0));
        lowest[file] = Some(lowest[file].map_or(start, |lowest| lowest.min(start)));
        if let Some((offset, true)) = offset {
            places[file].push((offset, block.sector));
        }
    }
    let known = places.into_iter().zip(lowest);
    known
        .map(|(places, lowest)| match (joined_extents(places), lowest) {
            (extents, Some(start)) if extents.is_empty() => vec![(0, start)],
            (extents, _) => extents,
        })
        .collect()
}

/// First file sector of the call that sent the request, and whether the call waited for the request.
fn request_file_offset(rows: &RecordingRows<'_>, block: &Block) -> Option<(u64, bool)> {
    let call = rows.call_at(block.thread, block.issued_ns)?;
    if call.file != block.file || call.offset_bytes == UNKNOWN {
        return None;
    }
    let states = rows.states(block.thread);
    let next = states.partition_point(|state| state.end_ns + AT_ONCE_NS.get() < block.completed_ns);
    let waited = states[next..].iter().take(2).any(|state| {
        let within = rows.call(state.call);
        state.kind == StateKind::Blocked
            && within.is_some_and(|within| within.start_ns == call.start_ns)
            && state.start_ns <= block.completed_ns
            && state.end_ns <= block.completed_ns + WOKEN_NS.get()
    });
    let reads = call.kind == CallKind::Read && block.op == BlockOp::Read;
    Some((call.offset_bytes / SECTOR_BYTES, waited && reads))
}

/// Merges places into extents; the first begins the file. If places differ by less than one read-ahead, the
/// lowest is right: the others are requests for data after the call's.
fn joined_extents(mut places: FileExtents) -> FileExtents {
    places.sort_unstable();
    let mut parts: Vec<(u64, i128)> = Vec::new();
    for (offset, sector) in places {
        let base = i128::from(sector) - i128::from(offset);
        match parts.last_mut() {
            Some(part) if (part.1 - base).abs() <= MOST_READ_AHEAD_SECTORS => {
                part.1 = part.1.min(base)
            }
            _ => parts.push((offset, base)),
        }
    }
    if let Some(first) = parts.first_mut() {
        first.0 = 0;
    }
    let place = |(offset, base): (u64, i128)| {
        let start = i128::from(offset) + base;
        (offset, u64::try_from(start.max(0)).unwrap_or(u64::MAX))
    };
    parts.into_iter().map(place).collect()
}

/// Position of a file's sector.
fn locate_sector(extents: &[(u64, u64)], sector: u64) -> u64 {
    let next = extents.partition_point(|extent| extent.0 <= sector);
    let (first, start) = extents[..next].last().copied().unwrap_or((0, 0));
    start.saturating_add(sector - first)
}

/// The ranges that contain the file's sectors from one to another, as first sector and end.
fn sector_ranges(extents: &[(u64, u64)], from: u64, to: u64) -> Vec<(u64, u64)> {
    let inside = extents.iter().map(|extent| extent.0);
    let cuts = inside.filter(|&at| from < at && at < to).chain([to]);
    let mut first = from;
    cuts.map(|cut| {
        let start = locate_sector(extents, first);
        let range = (start, start.saturating_add(cut - first));
        first = cut;
        range
    })
    .collect()
}
