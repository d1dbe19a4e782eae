//! Breakdown of time: for each class of threads, by CPU or wait category and by role. I/O by role and by file.
//!
//! These are totals of waits. They do not tell what a faster device would save, since waits overlap and move:
//! replay predicts that.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tierwise_recording::{
    Block, BlockOp, CallKind, Recording, Role, SECTOR_BYTES, State, ThreadClass,
};

use crate::TimeCategory;
use crate::recording_rows::running_ns;
use crate::recording_view::RecordingView;
use crate::timeline::{role_of_use, state_time_use};
use crate::transactions::sessions::raw_sessions;

/// Time of one class of threads in one category.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClassCategoryTime {
    /// The category.
    #[serde(rename = "part")]
    pub category: TimeCategory,
    /// Role of the file, if the time has a file and the file has a role.
    pub role: Option<Role>,
    /// Time, summed over threads.
    pub time_s: f64,
    /// Share of the class's time.
    pub share: f64,
}

/// The time of one class of threads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadClassTime {
    /// The class.
    pub class: &'static str,
    /// Threads of the class that were seen.
    pub threads: u32,
    /// Lifetime of these threads within bursts, summed.
    pub lived_s: f64,
    /// Time by category and role, in the order of [`TimeCategory`] and of roles.
    pub slices: Vec<ClassCategoryTime>,
}

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
    pub requests: DeviceRequests,
    /// Time in which at least one of them was outstanding.
    pub busy_s: f64,
    /// Time that threads waited in calls for the files, summed.
    pub waited_s: f64,
}

/// Requests to devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DeviceRequests {
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

impl DeviceRequests {
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
    /// Its number in the recording's table of files.
    pub file: u32,
    /// Its path.
    pub path: String,
    /// Its role.
    pub role: Option<Role>,
    /// Its size.
    pub size_bytes: u64,
    /// Requests to its device.
    #[serde(flatten)]
    pub requests: DeviceRequests,
    /// Time that threads waited for it in calls, summed.
    pub waited_s: f64,
    /// The part of that which client sessions waited.
    pub session_waited_s: f64,
    /// Time that its requests spent at the device, summed.
    pub device_s: f64,
}

/// Breakdown of a recording's time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimeBreakdown {
    /// Time in bursts.
    pub span_s: f64,
    /// Number of bursts.
    pub bursts: u32,
    /// Cores of the machine.
    pub cores: u32,
    /// Share of all cores' time that recorded threads used.
    pub busy_share: f64,
    /// Classes that have a thread.
    pub classes: Vec<ThreadClassTime>,
    /// I/O of each role.
    pub roles: Vec<RoleTraffic>,
    /// The files with the longest total wait.
    pub files: Vec<FileTraffic>,
    /// Largest difference between a thread's parts and its lifetime, as a share of that lifetime.
    pub sum_error: f64,
}

/// One class's time while it is summed.
#[derive(Default)]
struct ThreadClassSum {
    lived_ns: u64,
    categories: BTreeMap<(TimeCategory, Option<Role>), u64>,
}

/// A file's waits.
#[derive(Clone, Copy, Debug, Default)]
struct FileWaits {
    all_ns: u64,
    sessions_ns: u64,
}

/// Computes the breakdown, with at most `most_files` files.
#[must_use]
pub fn time_breakdown(recording: &Recording, most_files: usize) -> TimeBreakdown {
    let view = RecordingView::new(recording);
    let classes = thread_classes(&view);
    let mut sums: BTreeMap<ThreadClass, ThreadClassSum> = BTreeMap::new();
    let mut waited = vec![FileWaits::default(); recording.files.len()];
    let mut sum_error: f64 = 0.0;
    for states in recording.states.chunk_by(|a, b| a.thread == b.thread) {
        let class = classes[states[0].thread as usize];
        let is_session = class == ThreadClass::Session;
        let sum = sums.entry(class).or_default();
        let error = add_thread_time(&view, states, sum, &mut waited, is_session);
        sum_error = sum_error.max(error);
    }
    let span_ns = view.span_ns();
    let cores = recording.about.machine.cores;
    TimeBreakdown {
        span_s: seconds_of_ns(span_ns),
        bursts: recording.about.bursts.len() as u32,
        cores,
        busy_share: share_of_whole(running_ns(&recording.states), span_ns * u64::from(cores)),
        classes: sums
            .iter()
            .map(|(class, sum)| thread_class_time(&classes, *class, sum))
            .collect(),
        roles: traffic_by_role(recording, &waited),
        files: traffic_by_file(recording, &waited, most_files),
        sum_error,
    }
}

/// The class of each thread. Sessions outside the load count as other threads: those that do next to nothing
/// while others work, or that serve a replica of the log. Replay leaves them out.
fn thread_classes(view: &RecordingView<'_>) -> Vec<ThreadClass> {
    let sessions = raw_sessions(view);
    let turns = sessions.iter().flat_map(|session| &session.turns);
    let load: BTreeSet<u32> = turns.map(|turn| turn.thread).collect();
    let threads = (0..).zip(&view.recording.threads);
    threads
        .map(|(number, thread)| match thread.class {
            ThreadClass::Session if !load.contains(&number) => ThreadClass::Other,
            class => class,
        })
        .collect()
}

/// Adds the time of one thread; returns the difference between its parts and its lifetime.
fn add_thread_time(
    view: &RecordingView<'_>,
    states: &[State],
    sum: &mut ThreadClassSum,
    waited: &mut [FileWaits],
    is_session: bool,
) -> f64 {
    let mut added_ns = 0;
    for state in states {
        let time_ns = state.end_ns - state.start_ns;
        let (category, file) = state_time_use(view, state);
        let role = role_of_use(view, (category, file));
        *sum.categories.entry((category, role)).or_default() += time_ns;
        if let Some(waited) = waited.get_mut(file as usize) {
            waited.all_ns += time_ns;
            waited.sessions_ns += u64::from(is_session) * time_ns;
        }
        added_ns += time_ns;
    }
    let lived_ns = thread_lifetimes(view.recording, states);
    sum.lived_ns += lived_ns;
    share_of_whole(lived_ns.abs_diff(added_ns), lived_ns)
}

/// First and last known instant of a thread in each burst.
fn thread_lifetimes(recording: &Recording, states: &[State]) -> u64 {
    let bursts = recording.about.bursts.iter().map(|burst| {
        let first = states.partition_point(|state| state.start_ns < burst.start_ns);
        let end = states.partition_point(|state| state.start_ns < burst.end_ns);
        match states.get(first..end) {
            Some([first, .., last]) => last.end_ns - first.start_ns,
            Some([only]) => only.end_ns - only.start_ns,
            _ => 0,
        }
    });
    bursts.sum()
}

fn thread_class_time(
    classes: &[ThreadClass],
    class: ThreadClass,
    sum: &ThreadClassSum,
) -> ThreadClassTime {
    ThreadClassTime {
        class: class.name(),
        threads: classes.iter().filter(|&&one| one == class).count() as u32,
        lived_s: seconds_of_ns(sum.lived_ns),
        slices: sum
            .categories
            .iter()
            .map(|(&(category, role), &time_ns)| ClassCategoryTime {
                category,
                role,
                time_s: seconds_of_ns(time_ns),
                share: share_of_whole(time_ns, sum.lived_ns),
            })
            .collect(),
    }
}

fn seconds_of_ns(time_ns: u64) -> f64 {
    time_ns as f64 / 1e9
}

fn share_of_whole(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Every role of a file or request; last, requests without a role: journals of file systems.
fn traffic_by_role(recording: &Recording, waited: &[FileWaits]) -> Vec<RoleTraffic> {
    let all = Role::ALL.iter().copied().map(Some).chain([None]);
    let mut rows: Vec<RoleTraffic> = all
        .map(|role| RoleTraffic {
            role,
            ..RoleTraffic::default()
        })
        .collect();
    let row_of = |role: Option<Role>| {
        let place = Role::ALL.iter().position(|other| Some(*other) == role);
        place.unwrap_or(Role::ALL.len())
    };
    let role_of = |file: u32| recording.files.get(file as usize)?.role;
    for (file, waited) in recording.files.iter().zip(waited) {
        if file.role.is_none() {
            continue;
        }
        let row = &mut rows[row_of(file.role)];
        row.size_bytes += file.size_bytes;
        row.waited_s += seconds_of_ns(waited.all_ns);
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
    rows.retain(|row| row.size_bytes > 0 || row.requests != DeviceRequests::default());
    rows
}

/// The files with the longest total wait.
fn traffic_by_file(
    recording: &Recording,
    waited: &[FileWaits],
    most_files: usize,
) -> Vec<FileTraffic> {
    let files = (0..).zip(recording.files.iter().zip(waited));
    let mut rows: Vec<FileTraffic> = files
        .map(|(number, (file, waited))| FileTraffic {
            file: number,
            path: file.path.clone(),
            role: file.role,
            size_bytes: file.size_bytes,
            requests: DeviceRequests::default(),
            waited_s: seconds_of_ns(waited.all_ns),
            session_waited_s: seconds_of_ns(waited.sessions_ns),
            device_s: 0.0,
        })
        .collect();
    for block in &recording.blocks {
        if let Some(row) = rows.get_mut(block.file as usize) {
            row.requests.add(block);
            row.device_s += seconds_of_ns(block.completed_ns.saturating_sub(block.issued_ns));
        }
    }
    rows.retain(|row| row.waited_s > 0.0 || row.requests != DeviceRequests::default());
    rows.sort_by(|a, b| b.waited_s.total_cmp(&a.waited_s).then(a.path.cmp(&b.path)));
    rows.truncate(most_files);
    rows
}
