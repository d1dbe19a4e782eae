//! Limits of a recording as sentences, and files without a role that the database flushes or waits for: predictions
//! leave them out, so they are named.

use std::collections::BTreeMap;

use tierwise_recording::{Call, CallKind, NONE, StateKind, ThreadClass};

use crate::engines::FlushSharing;
use crate::rows::{Rows, makes_durable};
use crate::view::View;
use crate::{CommitDelay, Pace, UnassignedFile, Work};

/// Least share of the flushes or of the waits in calls on files. Chosen: less changes no answer beyond its interval.
const LEAST_SHARE: f64 = 0.02;
/// Directories of programs and the kernel: whoever reads there reads no database.
const OF_PROGRAMS: [&str; 9] = [
    "/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/", "/etc/", "/proc/", "/sys/", "/dev/",
];

pub(crate) fn limits(view: &View<'_>, work: &Work, unexplained: f64) -> Vec<String> {
    let about = &view.recording.about;
    let mut limits = Vec::new();
    if unexplained > 0.02 {
        limits.push(format!(
            "{:.0} % of the sessions' time went to waits for other sessions that no commit explains; they are left out",
            unexplained * 100.0
        ));
    }
    if let Some(each) = work.observed.counted_per_shown.filter(|each| *each != 1.0) {
        let off = (each - 1.0).abs() * 100.0;
        let than = if each > 1.0 { "more" } else { "fewer" };
        limits.push(format!(
            "{off:.0} % {than} transactions were counted than the recorded events show: rates follow the count"
        ));
    }
    let mut add = |applies: bool, limit: &str| {
        limits.extend(applies.then(|| limit.to_owned()));
    };
    add(
        view.threads(ThreadClass::Client).next().is_none(),
        "the clients were not recorded: their time between reply and request is kept as it was",
    );
    add(
        view.recording.blocks.is_empty(),
        "no requests to devices were recorded: what a flush asks of a file system is assumed",
    );
    add(
        work.log.is_none(),
        "nothing was written to a log while recording",
    );
    let delay = work.log.as_ref().and_then(|log| log.commit_delay);
    limits.extend(delay.map(commit_delay));
    let replica = view.flushes.replica.is_some();
    limits.extend(view.engine.commit_limits(&about.settings, replica));
    if work.log.is_some() && view.engine.flush_sharing == FlushSharing::Inferred {
        limits.push(format!(
            "there are no rules for the engine \"{}\": how its commits share flushes of the log was inferred from \
             which threads woke which, and its own buffer is not known",
            about.engine
        ));
    }
    let is_helper = |class, pace| class == ThreadClass::Background && pace == Pace::Loop;
    let mut sessions = work.sessions.iter();
    if sessions.any(|session| is_helper(session.class, session.pace)) {
        limits.push(
            "sessions waited for helper threads: their hand-overs are kept in the recorded order"
                .to_owned(),
        );
    }
    limits
}

/// The wait of a flush's leader, which every device keeps.
fn commit_delay(delay: CommitDelay) -> String {
    let by = match delay.from_settings {
        true => "as its settings say",
        false => "as inferred from the recorded waits, since its settings are not known",
    };
    let others = match delay.siblings {
        0 => String::new(),
        1 => " if another transaction is open".to_owned(),
        count => format!(" if {count} other transactions are open"),
    };
    format!(
        "before each flush of the log, the engine waits {:.1} ms for more commits{others}, {by}: the wait stays on \
         every device",
        f64::from(delay.time_ns) / 1e6
    )
}

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
pub(crate) fn unassigned(rows: &Rows<'_>) -> Vec<UnassignedFile> {
    let uses = uses(rows);
    let flushes: u64 = uses.values().map(|use_| use_.flushes).sum();
    let waited_ns: u64 = uses.values().map(|use_| use_.waited_ns).sum();
    let share = |part: u64, of: u64| part as f64 / of.max(1) as f64;
    let named = uses.iter().filter(|&(&file, _)| is_unassigned(rows, file));
    let mut found: Vec<UnassignedFile> = named
        .map(|(&file, one)| UnassignedFile {
            path: rows.recording.files[file as usize].path.clone(),
            flush_share: share(one.flushes, flushes),
            wait_share: share(one.waited_ns, waited_ns),
            is_like_log: one.flushes > 0 && one.ordered * 10 >= one.writes * 9,
        })
        .filter(|limit| limit.flush_share.max(limit.wait_share) >= LEAST_SHARE)
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
        let file_use = uses.entry(call.file).or_default();
        file_use.flushes += u64::from(makes_durable(call) && !call.failed);
        if call.kind == CallKind::Write {
            file_use.writes += 1;
            file_use.ordered += u64::from(call.offset_bytes >= file_use.end_bytes);
            file_use.end_bytes = call.offset_bytes.saturating_add(call.size_bytes);
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
