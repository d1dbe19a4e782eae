//! Files without a role that the database flushes or waits for: predictions leave them out, so they are named.

use std::collections::BTreeMap;

use tierwise_recording::{Call, CallKind, NONE, StateKind, ThreadClass};

use crate::UnassignedFile;
use crate::rows::{Rows, makes_durable};

/// Least share of the flushes or of the waits in calls on files. Chosen: less changes no answer beyond its interval.
const LEAST_SHARE: f64 = 0.02;
/// Directories of programs and the kernel: whoever reads there reads no database.
const OF_PROGRAMS: [&str; 9] = [
    "/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/", "/etc/", "/proc/", "/sys/", "/dev/",
];

#[derive(Clone, Copy, Debug, Default)]
struct Use {
    flushes: u64,
    waited_ns: u64,
    writes: u64,
    /// Writes that began where the one before ended, or after it.
    ordered: u64,
    end_bytes: u64,
}

/// Files that matter and have no role, those with most flushes first.
pub(crate) fn files(rows: &Rows<'_>) -> Vec<UnassignedFile> {
    let uses = uses(rows);
    let flushes: u64 = uses.values().map(|one| one.flushes).sum();
    let waited_ns: u64 = uses.values().map(|one| one.waited_ns).sum();
    let share = |part: u64, of: u64| part as f64 / of.max(1) as f64;
    let named = uses.iter().filter(|&(&file, _)| is_unassigned(rows, file));
    let mut found: Vec<UnassignedFile> = named
        .map(|(&file, one)| UnassignedFile {
            path: rows.recording.files[file as usize].path.clone(),
            flush_share: share(one.flushes, flushes),
            wait_share: share(one.waited_ns, waited_ns),
            is_like_log: one.flushes > 0 && one.ordered * 10 >= one.writes * 9,
        })
        .filter(|one| one.flush_share.max(one.wait_share) >= LEAST_SHARE)
        .collect();
    found.sort_by(|one, other| {
        let key = |file: &UnassignedFile| file.flush_share + file.wait_share;
        key(other).total_cmp(&key(one))
    });
    found
}

fn uses(rows: &Rows<'_>) -> BTreeMap<u32, Use> {
    let mut uses: BTreeMap<u32, Use> = BTreeMap::new();
    let of_file = |call: &&Call| call.file != NONE && is_regular(rows, call.file);
    for call in rows.recording.calls.iter().filter(of_file) {
        let one = uses.entry(call.file).or_default();
        one.flushes += u64::from(makes_durable(call) && !call.failed);
        if call.kind == CallKind::Write {
            one.writes += 1;
            one.ordered += u64::from(call.offset_bytes >= one.end_bytes);
            one.end_bytes = call.offset_bytes.saturating_add(call.size_bytes);
        }
    }
    let waits = rows.recording.states.iter().filter(|state| {
        let class = rows.class(state.thread);
        state.kind == StateKind::Blocked && class != Some(ThreadClass::Client)
    });
    for state in waits {
        if let Some(call) = rows.call(state.call).filter(of_file) {
            uses.entry(call.file).or_default().waited_ns += state.end_ns - state.start_ns;
        }
    }
    uses
}

/// A file, not a directory or a socket: those have no device and no size.
fn is_regular(rows: &Rows<'_>, file: u32) -> bool {
    let file = &rows.recording.files[file as usize];
    file.path.starts_with('/') && (file.device != NONE || file.size_bytes > 0)
}

fn is_unassigned(rows: &Rows<'_>, file: u32) -> bool {
    let file = &rows.recording.files[file as usize];
    file.role.is_none() && !OF_PROGRAMS.iter().any(|place| file.path.starts_with(place))
}
