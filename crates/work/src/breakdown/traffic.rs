//! I/O by role and by file.

use serde::Serialize;
use tierwise_recording::{Block, BlockOp, CallKind, Recording, Role};

use crate::rows::SECTOR_BYTES;

/// Largest number of files listed.
const FILES: usize = 40;

/// I/O of one role.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RoleTraffic {
    /// The role.
    pub role: Option<Role>,
    /// Names of the devices that hold its files.
    pub devices: Vec<String>,
    /// Size of its files.
    pub size_bytes: u64,
    /// Syncs that threads requested.
    pub syncs: u64,
    /// Requests to devices.
    #[serde(flatten)]
    pub requests: Requests,
    /// Time in which at least one of them was outstanding.
    pub busy_s: f64,
    /// Time that threads waited in calls for the files, summed.
    pub waited_s: f64,
}

/// Requests to devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Requests {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

impl Requests {
    fn add(&mut self, block: &Block) {
        let bytes = u64::from(block.sectors) * SECTOR_BYTES;
        match block.op {
            BlockOp::Read => {
                self.reads += 1;
                self.read_bytes += bytes;
            }
            BlockOp::Write => {
                self.writes += 1;
                self.written_bytes += bytes;
            }
            BlockOp::Flush => self.flushes += 1,
            BlockOp::Discard => {}
        }
    }
}

/// I/O of one file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileTraffic {
    /// Its path.
    pub path: String,
    /// Its role.
    pub role: Option<Role>,
    /// Its size.
    pub size_bytes: u64,
    /// Requests to its device.
    #[serde(flatten)]
    pub requests: Requests,
    /// Time that threads waited for it in calls, summed.
    pub waited_s: f64,
}

/// Every role of a file or request; last, requests without a role: journals of file systems.
pub(super) fn by_role(recording: &Recording, waited_ns: &[u64]) -> Vec<RoleTraffic> {
    let all = Role::ALL.iter().copied().map(Some).chain([None]);
    let mut rows: Vec<RoleTraffic> = all
        .map(|role| RoleTraffic {
            role,
            ..RoleTraffic::default()
        })
        .collect();
    let row_of = |role: Option<Role>| {
        let place = Role::ALL.iter().position(|one| Some(*one) == role);
        place.unwrap_or(Role::ALL.len())
    };
    let role_of = |file: u32| recording.files.get(file as usize)?.role;
    for (file, waited_ns) in recording.files.iter().zip(waited_ns) {
        if file.role.is_none() {
            continue;
        }
        let row = &mut rows[row_of(file.role)];
        row.size_bytes += file.size_bytes;
        row.waited_s += *waited_ns as f64 / 1e9;
        if let Some(device) = recording.about.devices.get(file.device as usize)
            && !row.devices.contains(&device.name)
        {
            row.devices.push(device.name.clone());
        }
    }
    // Of each row: the time covered by at least one request so far, and when that ends.
    let mut busy = vec![(0, 0); rows.len()];
    for block in &recording.blocks {
        let row = row_of(role_of(block.file));
        rows[row].requests.add(block);
        let (busy_ns, until_ns) = &mut busy[row];
        *busy_ns += block
            .completed_ns
            .saturating_sub(block.issued_ns.max(*until_ns));
        *until_ns = block.completed_ns.max(*until_ns);
    }
    let calls = recording.calls.iter();
    for call in calls.filter(|call| call.kind == CallKind::Sync) {
        if let Some(role) = role_of(call.file) {
            rows[row_of(Some(role))].syncs += 1;
        }
    }
    for (row, (busy_ns, _)) in rows.iter_mut().zip(busy) {
        row.busy_s = busy_ns as f64 / 1e9;
    }
    rows.retain(|row| row.size_bytes > 0 || row.requests != Requests::default());
    rows
}

/// The files with the longest total wait.
pub(super) fn by_file(recording: &Recording, waited_ns: &[u64]) -> Vec<FileTraffic> {
    let files = recording.files.iter().zip(waited_ns);
    let mut rows: Vec<FileTraffic> = files
        .map(|(file, waited_ns)| FileTraffic {
            path: file.path.clone(),
            role: file.role,
            size_bytes: file.size_bytes,
            requests: Requests::default(),
            waited_s: *waited_ns as f64 / 1e9,
        })
        .collect();
    for block in &recording.blocks {
        if let Some(row) = rows.get_mut(block.file as usize) {
            row.requests.add(block);
        }
    }
    rows.retain(|row| row.waited_s > 0.0 || row.requests != Requests::default());
    rows.sort_by(|a, b| b.waited_s.total_cmp(&a.waited_s).then(a.path.cmp(&b.path)));
    rows.truncate(FILES);
    rows
}
