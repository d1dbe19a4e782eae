//! Converts a recording into work: the order of the extraction stages.

use tierwise_recording::{Recording, ThreadClass};

use crate::emit::emitter::{Appending, Emitter};
use crate::emit::{background, log_rules, replica_session};
use crate::index::view::View;
use crate::index::work_clock::WorkClock;
use crate::log::checkpoints::Checkpoints;
use crate::log::flushes::LogFlushes;
use crate::page_cache::{dirty_pages, read_streams};
use crate::storage::devices;
use crate::timeline::idle_cores;
use crate::transactions::active_span::{STEADY_TRANSACTIONS, active_span, trim};
use crate::transactions::counted::Counted;
use crate::transactions::explicit_transactions::Boundaries;
use crate::transactions::sessions::{RawSession, raw_sessions};
use crate::transactions::thread_dependencies::ThreadDependencies;
use crate::transactions::turn_meaning::{Meaning, meanings};
use crate::transactions::turns::RawTurn;
use crate::transactions::{
    clients, database_lock, explicit_transactions, hot_locks, observed, previous, status,
};
use crate::{Disabled, Grouping, Pace, Session, Work, WorkError, ablation, limits, unassigned};

/// More than this appended between two commits is a load, not a transaction.
const BULK_BYTES: u64 = 1 << 20;

impl Work {
    /// Extracts the work of a checked recording.
    ///
    /// # Errors
    /// If it has no bursts or no session that did anything.
    pub fn from_recording(recording: &Recording) -> Result<Self, WorkError> {
        Self::without(recording, Disabled::default())
    }

    /// The same with mechanisms disabled.
    ///
    /// # Errors
    /// As [`Self::from_recording`].
    pub fn without(recording: &Recording, disabled: Disabled) -> Result<Self, WorkError> {
        let view = View::new(recording);
        let flushes = LogFlushes::new(&view);
        let raw_sessions = raw_sessions(&view, &flushes);
        if view.span_ns() == 0 || raw_sessions.is_empty() {
            return Err(WorkError::new(
                "the recording holds no session that did anything",
                "record while the database serves its clients, and check the rules for classes of threads",
            ));
        }
        Ok(work(&view, &flushes, raw_sessions, disabled))
    }
}

fn work(
    view: &View<'_>,
    flushes: &LogFlushes,
    raw_sessions: Vec<RawSession>,
    disabled: Disabled,
) -> Work {
    let about = &view.recording.about;
    let (names, mut turns): (Vec<String>, Vec<Vec<RawTurn>>) = raw_sessions
        .into_iter()
        .map(|session| (session.name, session.turns))
        .unzip();
    let boundaries = boundaries(&mut turns);
    let few = turns.iter().map(Vec::len).sum::<usize>() < STEADY_TRANSACTIONS;
    let once = few || (view.is_whole() && names.len() == 1);
    if let Some(span) = active_span(view, &turns).filter(|_| once) {
        trim(&mut turns, span);
    }
    let counted = Counted::of(view);
    let expected = counted.map(|counted| counted.in_bursts());
    let mut meanings = meanings(&turns, boundaries, expected);
    let dependencies = ThreadDependencies::new(view, flushes, disabled);
    let checkpoints = Checkpoints::find(view, flushes);
    let (hot_locks, unexplained) = if flushes.grouping(view) == Grouping::Exclusive {
        let found = checkpoints.as_ref();
        (database_lock::find(view, found, &turns, &mut meanings), 0.0)
    } else {
        hot_locks::find(view, &dependencies, &turns, &mut meanings)
    };
    let observed = observed::observed(view, flushes, &turns, &meanings, counted);
    let commits = observed::commits(&turns, &meanings);
    let appending = appending(flushes, commits, session_cpu_ns(view));
    let mut emitter = Emitter::new(
        view,
        flushes,
        &dependencies,
        appending,
        checkpoints.as_ref(),
    );
    let mut sessions: Vec<Session> = names
        .into_iter()
        .zip(turns.iter().zip(&meanings))
        .map(|(name, (turns, meanings))| client_session(&mut emitter, name, turns, meanings))
        .collect();
    let ended = ended(&turns, &meanings);
    let log = log_rules::log(&emitter);
    let checkpoints = checkpoints
        .as_ref()
        .map(|found| found.rules(view, &mut emitter.syncs));
    let replica = flushes.replica;
    sessions.extend(replica.map(|replica| replica_session::session(replica, &mut emitter)));
    sessions.extend(background::sessions(
        &mut emitter,
        &WorkClock::new(&about.bursts),
        &ended,
    ));
    let mut work = Work {
        cores: about.machine.cores.max(1),
        memory_bytes: about.machine.memory_bytes,
        page_cache: view.page_cache.clone(),
        sessions,
        scripts: emitter.syncs.scripts,
        log,
        checkpoints,
        locks: hot_locks,
        cold_factor: Some(idle_cores::mean_cold_factor(view.all_states())),
        foreign_cpu_share: others_share(view),
        devices: devices::devices(view),
        footprints: view
            .address_space
            .regions()
            .map(|(role, region)| (role, region.used))
            .collect(),
        partitions: devices::partitions(view),
        read_ahead: read_streams::windows(view),
        read_ahead_by_device: read_streams::of_kernel(&about.machine.kernel),
        most_dirty_bytes: dirty_pages::most_dirty_bytes(view),
        observed,
        disabled,
        ..Work::default()
    };
    ablation::strip(&mut work);
    work.unassigned = unassigned::files(view);
    work.limits = limits::limits(view, &work, unexplained, replica.is_some());
    work
}

/// Finds where transactions begin and end; changes the shapes of turns accordingly.
fn boundaries(turns: &mut [Vec<RawTurn>]) -> Boundaries {
    if let Some(said) = status::mark_inside(turns) {
        return said;
    }
    previous::tell_apart(turns);
    explicit_transactions::mark_inside(turns).unwrap_or(Boundaries::Unsaid)
}

fn client_session(
    emitter: &mut Emitter<'_>,
    name: String,
    turns: &[RawTurn],
    meanings: &[Meaning],
) -> Session {
    let mut session = Session {
        name,
        class: ThreadClass::Session,
        client: clients::thread_of(emitter.view, turns),
        pace: Pace::Loop,
        turns: Vec::with_capacity(turns.len()),
        starts: Vec::new(),
        steps: Vec::new(),
    };
    for (turn, meaning) in turns.iter().zip(meanings) {
        emitter.turn(turn, meaning, &mut session);
    }
    session
}

/// Appends to the log: with each commit, or continuously where commits are few and large.
fn appending(flushes: &LogFlushes, commits: usize, session_cpu_ns: u64) -> Appending {
    let per_commit = flushes.appended_bytes / commits.max(1) as u64;
    if commits == 0 || per_commit > BULK_BYTES {
        Appending::PerCpu(flushes.appended_bytes as f64 / session_cpu_ns.max(1) as f64)
    } else {
        Appending::PerCommit(per_commit as u32)
    }
}

fn session_cpu_ns(view: &View<'_>) -> u64 {
    let sessions = view.threads(ThreadClass::Session);
    sessions.map(|thread| view.cpu_ns(thread)).sum()
}

/// End times of transactions, sorted.
fn ended(turns: &[Vec<RawTurn>], meanings: &[Vec<Meaning>]) -> Vec<u64> {
    let pairs = turns.iter().flatten().zip(meanings.iter().flatten());
    let mut ended: Vec<u64> = pairs
        .filter(|(_, meaning)| meaning.ends)
        .map(|(turn, _)| turn.end_ns())
        .collect();
    ended.sort_unstable();
    ended
}

/// Processor time of other programs and of shared kernel threads, as a share of all cores; without that of
/// storage where it is known.
fn others_share(view: &View<'_>) -> f64 {
    let about = &view.recording.about;
    let kernel_ns: u64 = [ThreadClass::Kernel, ThreadClass::Other]
        .into_iter()
        .flat_map(|class| view.threads(class))
        .map(|thread| view.cpu_ns(thread))
        .sum();
    let cores_ns = f64::from(about.machine.cores.max(1)) * view.span_ns().max(1) as f64;
    let storage_ns = view.storage_cpu().map_or(0, |used| used.kernel_ns);
    let threads_ns = kernel_ns as f64 - storage_ns as f64;
    (about.foreign_cpu_share + threads_ns / cores_ns).clamp(0.0, 0.95)
}
