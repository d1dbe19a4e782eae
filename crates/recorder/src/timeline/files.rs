//! Files by path, where they lie on devices, and the numbers that processes have for them.

use std::collections::{BTreeSet, HashMap};

use rangemap::RangeMap;
use tierwise_recording::{CallKind, File, NONE, PAGE_BYTES, Role, SECTOR_BYTES, UNKNOWN};

/// Bytes of a file that lie together on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileExtent {
    /// Index of the device among those of the recording.
    pub device: u32,
    /// First sector, counted from the start of the partition.
    pub sector: u64,
    /// Length in sectors.
    pub sectors: u64,
    /// Where in the file it begins.
    pub offset_bytes: u64,
}

/// A sector's file and the place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilePlace {
    pub file: u32,
    pub offset_bytes: u64,
}

/// All extents, without overlap; the latest one added wins.
#[derive(Debug, Default)]
pub(crate) struct ExtentMap {
    /// By device and sector: the file, and the distance from a sector's place on the device to its place in the file,
    /// in bytes, modulo 2^64.
    devices: HashMap<u32, RangeMap<u64, (u32, u64)>>,
}

impl ExtentMap {
    pub(crate) fn insert(&mut self, file: u32, extent: FileExtent) {
        let end = extent.sector.saturating_add(extent.sectors);
        if end > extent.sector {
            let place_bytes = extent.sector.wrapping_mul(SECTOR_BYTES);
            let distance_bytes = extent.offset_bytes.wrapping_sub(place_bytes);
            let device = self.devices.entry(extent.device).or_default();
            device.insert(extent.sector..end, (file, distance_bytes));
        }
    }

    /// The file that a sector belongs to.
    pub(crate) fn find(&self, device: u32, sector: u64) -> Option<FilePlace> {
        let &(file, distance_bytes) = self.devices.get(&device)?.get(&sector)?;
        Some(FilePlace {
            file,
            offset_bytes: distance_bytes.wrapping_add(sector.wrapping_mul(SECTOR_BYTES)),
        })
    }
}

/// Facts about a file from outside of the trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileFacts {
    pub role: Option<Role>,
    /// Index of its device among those of the recording.
    pub device: Option<u32>,
    pub size_bytes: u64,
    /// Whether it is there and holds nothing.
    pub empty: bool,
    /// Where it lies; what was known before about the same sectors is replaced.
    pub extents: Vec<FileExtent>,
}

/// Every file that was seen, each once.
#[derive(Debug, Default)]
pub(super) struct SeenFiles {
    pub rows: Vec<File>,
    pub extents: ExtentMap,
    by_path: HashMap<String, u32>,
    /// New, or of another size than when they were last described.
    changed: BTreeSet<u32>,
    /// With a role and a device, but nowhere on it that is known: removed by now, or not written back yet.
    unplaced: BTreeSet<u32>,
    /// All bytes lie where it is known: what lies elsewhere is not of them, whoever gave it to the device. A scheduler's
    /// queue is emptied by any thread.
    placed: BTreeSet<u32>,
    /// Written by a recorded thread.
    written: BTreeSet<u32>,
}

impl SeenFiles {
    /// The index of a path, new or known.
    pub(super) fn intern(&mut self, path: &str) -> u32 {
        if let Some(&file) = self.by_path.get(path) {
            return file;
        }
        let file = self.rows.len() as u32;
        self.rows.push(File {
            path: path.to_owned(),
            role: None,
            device: NONE,
            size_bytes: 0,
        });
        self.by_path.insert(path.to_owned(), file);
        self.changed.insert(file);
        file
    }

    /// Whether its bytes are exchanged with a peer rather than a file.
    pub(super) fn is_stream(&self, file: u32) -> bool {
        match self.rows.get(file as usize) {
            Some(row) => !row.path.starts_with('/'),
            None => true,
        }
    }

    /// A recorded thread made a call with a file.
    pub(super) fn touch(&mut self, file: u32, kind: CallKind) {
        if file != NONE && matches!(kind, CallKind::Write | CallKind::Resize) {
            self.changed.insert(file);
        }
        if file != NONE && kind == CallKind::Write {
            self.written.insert(file);
        }
    }

    /// Files whose facts are not known or no longer true.
    pub(super) fn to_resolve(&self) -> Vec<(u32, String)> {
        let changed = self.changed.iter().filter(|&&file| !self.is_stream(file));
        changed
            .map(|&file| (file, self.rows[file as usize].path.clone()))
            .collect()
    }

    /// The file for a place on a device where no known file lies: the newest file whose place is not known,
    /// if all such files are of one role. Temporary files are removed before their place can be asked for.
    pub(super) fn unplaced_on(&self, device: u32) -> Option<u32> {
        let on_it = |file: &&u32| self.rows[**file as usize].device == device;
        let newest = *self.unplaced.iter().rev().find(on_it)?;
        let role = |file: u32| self.rows[file as usize].role;
        let mut others = self.unplaced.iter().filter(on_it);
        let one_role = others.all(|&file| role(file) == role(newest));
        one_role.then_some(newest)
    }

    /// Whether so many sectors at once can be a file's: it is as large, or was removed, and its size with it.
    pub(super) fn can_hold(&self, file: u32, sectors: u32) -> bool {
        let size_bytes = self.rows[file as usize].size_bytes;
        size_bytes == 0
            || u64::from(sectors) * SECTOR_BYTES <= size_bytes.next_multiple_of(PAGE_BYTES)
    }

    /// Whether what lies where no file is known to lie can be a file's.
    pub(super) fn may_lie_elsewhere(&self, file: u32) -> bool {
        !self.placed.contains(&file)
    }

    /// Devices that matter to the database.
    pub(super) fn devices_with_roles(&self) -> BTreeSet<u32> {
        let placed = self.rows.iter().filter(|row| row.role.is_some());
        placed.map(|row| row.device).collect()
    }

    pub(super) fn describe(&mut self, file: u32, facts: FileFacts) {
        let Some(row) = self.rows.get_mut(file as usize) else {
            return;
        };
        row.role = facts.role;
        row.device = facts.device.unwrap_or(NONE);
        row.size_bytes = facts.size_bytes;
        self.changed.remove(&file);
        // A file that is empty or was removed, and that nobody wrote, has no requests: those without a place are of other
        // programs. A temporary one may have been written between bursts.
        let may_be_unseen = !facts.empty && facts.role == Some(Role::Temp);
        let may_lie_anywhere =
            facts.size_bytes > 0 || may_be_unseen || self.written.contains(&file);
        if facts.extents.is_empty() && facts.role.is_some() && may_lie_anywhere {
            self.unplaced.insert(file);
        } else {
            self.unplaced.remove(&file);
        }
        let sectors = facts.extents.iter().map(|extent| extent.sectors);
        let placed_bytes = sectors.sum::<u64>() * SECTOR_BYTES;
        if placed_bytes > 0 && placed_bytes >= facts.size_bytes {
            self.placed.insert(file);
        } else {
            self.placed.remove(&file);
        }
        for extent in facts.extents {
            self.extents.insert(file, extent);
        }
    }
}

/// The open file behind a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OpenDescriptor {
    /// Index of the file.
    pub file: u32,
    /// Where the next read or write without an offset begins, or [`UNKNOWN`].
    pub position: u64,
}

/// The numbers of every process.
#[derive(Debug, Default)]
pub(super) struct DescriptorTables {
    processes: HashMap<i32, HashMap<i32, OpenDescriptor>>,
}

impl DescriptorTables {
    pub(super) fn get(&mut self, pid: i32, fd: i32) -> Option<&mut OpenDescriptor> {
        self.processes.get_mut(&pid)?.get_mut(&fd)
    }

    pub(super) fn set(&mut self, pid: i32, fd: i32, file: u32, position: u64) {
        let descriptor = OpenDescriptor { file, position };
        let open = self.processes.entry(pid).or_default();
        open.insert(fd, descriptor);
    }

    /// `copy` stands for the same as `fd`; for nothing known if that is not known.
    pub(super) fn duplicate(&mut self, pid: i32, fd: i32, copy: i32) {
        match self.get(pid, fd).copied() {
            Some(of) => self.set(pid, copy, of.file, UNKNOWN),
            None => self.close(pid, copy),
        }
    }

    pub(super) fn close(&mut self, pid: i32, fd: i32) {
        if let Some(open) = self.processes.get_mut(&pid) {
            open.remove(&fd);
        }
    }

    pub(super) fn close_range(&mut self, pid: i32, first: u64, last: u64) {
        if let Some(open) = self.processes.get_mut(&pid) {
            open.retain(|&fd, _| !(first..=last).contains(&(fd as u64)));
        }
    }

    /// A child process begins with its parent's numbers.
    pub(super) fn fork(&mut self, parent: i32, child: i32) {
        if let Some(open) = self.processes.get(&parent).cloned() {
            self.processes.insert(child, open);
        }
    }

    pub(super) fn forget(&mut self, pid: i32) {
        self.processes.remove(&pid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(sector: u64, sectors: u64, offset_bytes: u64) -> FileExtent {
        FileExtent {
            device: 3,
            sector,
            sectors,
            offset_bytes,
        }
    }

    #[test]
    fn the_latest_wins_and_what_it_covers_is_cut() {
        let mut extents = ExtentMap::default();
        extents.insert(1, extent(100, 100, 0));
        extents.insert(2, extent(120, 10, 8192));
        let found = |sector| {
            let place = extents.find(3, sector)?;
            Some((place.file, place.offset_bytes))
        };
        assert_eq!(found(99), None);
        assert_eq!(found(100), Some((1, 0)));
        assert_eq!(found(119), Some((1, 19 * 512)));
        assert_eq!(found(121), Some((2, 8192 + 512)));
        assert_eq!(found(130), Some((1, 30 * 512)));
        assert_eq!(found(200), None);
        assert_eq!(extents.find(2, 121), None);
    }
}
