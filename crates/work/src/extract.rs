//! Converts a recording into work: the order of the extraction stages.

use std::collections::BTreeMap;

use tierwise_recording::{Call, CallKind, NONE, Recording, StateKind, ThreadClass};

use crate::emit::{self, LogAppending, StepEmitter, empty_session};
use crate::engines::FlushSharing;
use crate::model::mechanism;
use crate::page_cache::reuse_distances::ReuseDistances;
use crate::recording_rows::{RecordingRows, makes_durable};
use crate::recording_view::RecordingView;
use crate::transactions::boundaries::{find_transaction_boundaries, set_transaction_ends};
use crate::transactions::observed::CountedTransactions;
use crate::transactions::sessions::{
    RawSession, STEADY_TRANSACTIONS, active_span, raw_sessions, trim_to_span,
};
use crate::transactions::turns::RawTurn;
use crate::transactions::{ThreadDependencies, hot_locks, observed, sessions};
use crate::{
    CommitDelay, CommitGrouping, DisabledMechanisms, ReadCpu, TurnPace, UnassignedFile, UserError,
    Work, page_cache, storage, timeline,
};

/// More than this appended between two commits is a load, not a transaction.
const BULK_BYTES: u64 = 1 << 20;

impl Work {
    /// Extracts the work of a checked recording.
    ///
    /// # Errors
    /// If it has no bursts or no session that did anything.
    pub fn from_recording(recording: &Recording) -> Result<Self, UserError> {
        Self::without(recording, DisabledMechanisms::default())
    }

    /// The same with mechanisms disabled.
    ///
    /// # Errors
    /// As [`Self::from_recording`].
    pub fn without(recording: &Recording, disabled: DisabledMechanisms) -> Result<Self, UserError> {
        let view = RecordingView::new(recording);
        if view.span_ns() == 0 {
            return Err(UserError::new(
                "the recording ended before its first burst",
                "record longer, or with a shorter --burst or a greater --duty",
            ));
        }
        let sessions = raw_sessions(&view);
        if sessions.is_empty() {
            return Err(UserError::new(
                "the recording holds no session that did anything",
                "record while the database serves its clients, and check the rules for classes of threads",
            ));
        }
        Ok(extract_work(&view, sessions, disabled))
    }
}

fn extract_work(
    view: &RecordingView<'_>,
    sessions: Vec<RawSession<'_>>,
    disabled: DisabledMechanisms,
) -> Work {
    let about = &view.recording.about;
    let named = sessions
        .into_iter()
        .map(|session| (session.name, session.turns));
    let (names, mut turns): (Vec<String>, Vec<Vec<RawTurn>>) = named.unzip();
    let boundaries = find_transaction_boundaries(&mut turns);
    let few = turns.iter().map(Vec::len).sum::<usize>() < STEADY_TRANSACTIONS;
    let once = few || (view.is_whole() && names.len() == 1);
    if let Some(span) = active_span(view, &turns).filter(|_| once) {
        trim_to_span(&mut turns, span);
    }
    let counted = CountedTransactions::of(view);
    let expected = counted.map(|counted| counted.in_bursts());
    set_transaction_ends(&mut turns, boundaries, expected, &view.flushes);
    let dependencies = ThreadDependencies::new(view, disabled);
    let (locks, unexplained) = match view.flushes.grouping(view) {
        CommitGrouping::Exclusive => (hot_locks::find_database_lock(view, &mut turns), 0.0),
        _ => hot_locks::find_hot_locks(&dependencies, &mut turns),
    };
    let observed = observed::observed_figures(view, &turns, counted);
    let appending = log_appending(view, observed::all_commits(&turns));
    let (reuse_distances, page_cache, [cache_reuse, buffer_reuse]) = ReuseDistances::new(view);
    let mut emitter = StepEmitter::new(view, &dependencies, appending, &reuse_distances);
    let mut sessions = Vec::new();
    for (name, turns) in names.into_iter().zip(&turns) {
        let client = sessions::client_thread_of(view, turns);
        let mut session = empty_session(name, ThreadClass::Session, client);
        for turn in turns {
            emitter.turn(turn, &mut session);
        }
        sessions.push(session);
    }
    let read_cpu = ReadCpu::new(&sessions, &emitter.read_calls);
    let log = emit::log_rules(&emitter);
    let replica = view.flushes.replica;
    sessions.extend(replica.map(|replica| emit::replica_session(&mut emitter, replica)));
    let ended = turns.iter().flatten().filter(|turn| turn.ends);
    let mut ended: Vec<u64> = ended.map(RawTurn::end_ns).collect();
    ended.sort_unstable();
    sessions.extend(emit::background_sessions(&mut emitter, &ended));
    let regions = view.address_space.regions.iter();
    let mut work = Work {
        cores: about.server_cores(),
        memory_bytes: about.machine.memory_bytes,
        page_cache,
        cache_reuse,
        buffer_reuse,
        read_cpu,
        sessions,
        scripts: emitter.syncs.scripts,
        log,
        locks,
        cold_factor: Some(timeline::mean_cold_factor(&view.recording.states)),
        foreign_cpu_share: other_programs_cpu_share(view),
        devices: storage::recorded_devices(view),
        paths: storage::measured_emulated_paths(view),
        footprints: regions.map(|(role, region)| (*role, region.used)).collect(),
        cached_roles: page_cache::cached_roles(view),
        most_dirty_bytes: page_cache::most_dirty_bytes(view),
        observed,
        disabled,
        unassigned: unassigned_files(view),
        replica_elsewhere: view.flushes.replica.is_none()
            && view.engine.waits_for_replica(&about.settings),
        limits: Vec::new(),
    };
    mechanism::strip_mechanisms(&mut work);
    work.limits = recording_limitations(view, &work, unexplained);
    work
}

/// Appends to the log: with each commit, or continuously where commits are few and large.
fn log_appending(view: &RecordingView<'_>, commits: usize) -> LogAppending {
    let appended_bytes = view.flushes.appended_bytes;
    let per_commit = appended_bytes / commits.max(1) as u64;
    if commits == 0 || per_commit > BULK_BYTES {
        let sessions = view.threads(ThreadClass::Session);
        let cpu_ns: u64 = sessions.map(|thread| view.cpu_ns(thread)).sum();
        LogAppending::PerCpu(appended_bytes as f64 / cpu_ns.max(1) as f64)
    } else {
        LogAppending::PerCommit(per_commit as u32)
    }
}

/// Processor time of other programs and of shared kernel threads, as a share of all cores; without that of
/// storage where it is known.
fn other_programs_cpu_share(view: &RecordingView<'_>) -> f64 {
    let about = &view.recording.about;
    let kernel_ns: u64 = [ThreadClass::Kernel, ThreadClass::Other]
        .into_iter()
        .flat_map(|class| view.threads(class))
        .map(|thread| view.cpu_ns(thread))
        .sum();
    let cores_ns = f64::from(about.machine.cores.max(1)) * view.span_ns().max(1) as f64;
    let storage_ns = view.storage_cpu_ns(|used| used.kernel_ns);
    let threads_ns = kernel_ns as f64 - storage_ns as f64;
    (about.foreign_cpu_share + threads_ns / cores_ns).clamp(0.0, 0.95)
}

// Limits of a recording as sentences, and files without a role that the database flushes or waits for: predictions
// leave them out, so they are named.

/// Least share of the flushes or of the waits in calls on files. Chosen: less changes no answer beyond its interval.
const LEAST_SHARE: f64 = 0.02;
/// Directories of programs and the kernel: whoever reads there reads no database.
const OF_PROGRAMS: [&str; 9] = [
    "/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/", "/etc/", "/proc/", "/sys/", "/dev/",
];

pub(crate) fn recording_limitations(
    view: &RecordingView<'_>,
    work: &Work,
    unexplained: f64,
) -> Vec<String> {
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
    limits.extend(delay.map(commit_delay_text));
    let replica = view.flushes.replica.is_some();
    limits.extend(view.engine.commit_limits(&about.settings, replica));
    if work.log.is_some() && view.engine.flush_sharing == FlushSharing::Inferred {
        let (for_what, also) = match view.engine.has_buffer_rule() {
            true => ("commits of the engine", ""),
            false => ("the engine", ", and its own buffer is not known"),
        };
        limits.push(format!(
            "there are no rules for {for_what} \"{}\": how its commits share flushes of the log was inferred from \
             which threads woke which{also}",
            about.engine
        ));
    }
    let is_helper = |class, pace| class == ThreadClass::Background && pace == TurnPace::Loop;
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
fn commit_delay_text(delay: CommitDelay) -> String {
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
struct FileUse {
    flushes: u64,
    waited_ns: u64,
    writes: u64,
    /// Writes that began where the one before ended, or after it.
    ordered: u64,
    end_bytes: u64,
}

/// Files that matter and have no role, those with most flushes first.
pub(crate) fn unassigned_files(rows: &RecordingRows<'_>) -> Vec<UnassignedFile> {
    let uses = file_uses(rows);
    let flushes: u64 = uses.values().map(|use_| use_.flushes).sum();
    let waited_ns: u64 = uses.values().map(|use_| use_.waited_ns).sum();
    let share = |part: u64, of: u64| part as f64 / of.max(1) as f64;
    let named = uses
        .iter()
        .filter(|&(&file, _)| is_unassigned_file(rows, file));
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

fn file_uses(rows: &RecordingRows<'_>) -> BTreeMap<u32, FileUse> {
    let mut uses: BTreeMap<u32, FileUse> = BTreeMap::new();
    let of_file = |call: &&Call| call.file != NONE && is_regular_file(rows, call.file);
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
fn is_regular_file(rows: &RecordingRows<'_>, file: u32) -> bool {
    let file = &rows.recording.files[file as usize];
    file.path.starts_with('/') && (file.device != NONE || file.size_bytes > 0)
}

fn is_unassigned_file(rows: &RecordingRows<'_>, file: u32) -> bool {
    let file = &rows.recording.files[file as usize];
    file.role.is_none() && !OF_PROGRAMS.iter().any(|place| file.path.starts_with(place))
}
