//! I/O by role and by file.

use serde::Serialize;
use tierwise_recording::{Block, BlockOp, CallKind, Recording, Role};

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
        let bytes = u64::from(block.sectors) * 512;
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
    let rows = all.map(|role| traffic_of(recording, waited_ns, role));
    rows.filter(|row| row.size_bytes > 0 || row.requests != Requests::default())
        .collect()
}

fn traffic_of(recording: &Recording, waited_ns: &[u64], role: Option<Role>) -> RoleTraffic {
    let mut row = RoleTraffic {
        role,
        ..RoleTraffic::default()
    };
    let role_of = |file: u32| {
        recording
            .files
            .get(file as usize)
            .and_then(|file| file.role)
    };
    for (file, waited_ns) in recording.files.iter().zip(waited_ns) {
        if file.role == role && role.is_some() {
            row.size_bytes += file.size_bytes;
            row.waited_s += *waited_ns as f64 / 1e9;
            if let Some(device) = recording.about.devices.get(file.device as usize)
                && !row.devices.contains(&device.name)
            {
                row.devices.push(device.name.clone());
            }
        }
    }
    let mut spans = Vec::new();
    for block in recording
        .blocks
        .iter()
        .filter(|block| role_of(block.file) == role)
    {
        row.requests.add(block);
        spans.push((block.issued_ns, block.completed_ns));
    }
    row.busy_s = covered_ns(&spans) as f64 / 1e9;
    let calls = recording.calls.iter();
    row.syncs = calls
        .filter(|call| call.kind == CallKind::Sync && role.is_some() && role_of(call.file) == role)
        .count() as u64;
    row
}

/// Time covered by at least one of the spans, which are sorted by start.
fn covered_ns(spans: &[(u64, u64)]) -> u64 {
    let mut covered = 0;
    let mut until = 0;
    for &(start, end) in spans {
        covered += end.saturating_sub(start.max(until));
        until = until.max(end);
    }
    covered
}

/// The files with the longest total wait.
pub(super) fn by_file(recording: &Recording, waited_ns: &[u64]) -> Vec<FileTraffic> {
    let mut requests = vec![Requests::default(); recording.files.len()];
    for block in &recording.blocks {
        if let Some(requests) = requests.get_mut(block.file as usize) {
            requests.add(block);
        }
    }
    let mut rows: Vec<FileTraffic> = recording
        .files
        .iter()
        .zip(requests)
        .zip(waited_ns)
        .filter(|((_, requests), waited)| **waited > 0 || *requests != Requests::default())
        .map(|((file, requests), waited)| FileTraffic {
            path: file.path.clone(),
            role: file.role,
            size_bytes: file.size_bytes,
            requests,
            waited_s: *waited as f64 / 1e9,
        })
        .collect();
    rows.sort_by(|a, b| b.waited_s.total_cmp(&a.waited_s).then(a.path.cmp(&b.path)));
    rows.truncate(FILES);
    rows
}
