//! Converts a recording into work: the order of the extraction stages.

use tierwise_recording::{Recording, ThreadClass};

use crate::emit::background;
use crate::emit::emitter::{self, Appending, Emitter, empty_session};
use crate::model::mechanism;
use crate::page_cache::reuse_distances::ReuseDistances;
use crate::page_cache::{cache_size, dirty_pages};
use crate::storage::syncs;
use crate::transactions::boundaries::{boundaries, set_ends};
use crate::transactions::observed::{self, Counted};
use crate::transactions::sessions::{
    self, RawSession, STEADY_TRANSACTIONS, active_span, raw_sessions, trim,
};
use crate::transactions::thread_dependencies::ThreadDependencies;
use crate::transactions::turns::RawTurn;
use crate::transactions::{database_lock, hot_locks};
use crate::view::View;
use crate::{Disabled, Grouping, ReadCpu, UserError, Work, limits, timeline};

/// More than this appended between two commits is a load, not a transaction.
const BULK_BYTES: u64 = 1 << 20;

impl Work {
    /// Extracts the work of a checked recording.
    ///
    /// # Errors
    /// If it has no bursts or no session that did anything.
    pub fn from_recording(recording: &Recording) -> Result<Self, UserError> {
        Self::without(recording, Disabled::default())
    }

    /// The same with mechanisms disabled.
    ///
    /// # Errors
    /// As [`Self::from_recording`].
    pub fn without(recording: &Recording, disabled: Disabled) -> Result<Self, UserError> {
        let view = View::new(recording);
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
        Ok(work(&view, sessions, disabled))
    }
}

fn work(view: &View<'_>, sessions: Vec<RawSession<'_>>, disabled: Disabled) -> Work {
    let about = &view.recording.about;
    let named = sessions
        .into_iter()
        .map(|session| (session.name, session.turns));
    let (names, mut turns): (Vec<String>, Vec<Vec<RawTurn>>) = named.unzip();
    let boundaries = boundaries(&mut turns);
    let few = turns.iter().map(Vec::len).sum::<usize>() < STEADY_TRANSACTIONS;
    let once = few || (view.is_whole() && names.len() == 1);
    if let Some(span) = active_span(view, &turns).filter(|_| once) {
        trim(&mut turns, span);
    }
    let counted = Counted::of(view);
    let expected = counted.map(|counted| counted.in_bursts());
    set_ends(&mut turns, boundaries, expected);
    let dependencies = ThreadDependencies::new(view, disabled);
    let (locks, unexplained) = match view.flushes.grouping(view) {
        Grouping::Exclusive => (database_lock::find(view, &mut turns), 0.0),
        _ => hot_locks::find(&dependencies, &mut turns),
    };
    let observed = observed::observed(view, &turns, counted);
    let appending = appending(view, observed::commits(&turns));
    let (reuse_distances, page_cache, [cache_reuse, buffer_reuse]) = ReuseDistances::new(view);
    let mut emitter = Emitter::new(view, &dependencies, appending, &reuse_distances);
    let mut sessions = Vec::new();
    for (name, turns) in names.into_iter().zip(&turns) {
        let client = sessions::thread_of(view, turns);
        let mut session = empty_session(name, ThreadClass::Session, client);
        for turn in turns {
            emitter.turn(turn, &mut session);
        }
        sessions.push(session);
    }
    let read_cpu = ReadCpu::new(&sessions, &emitter.read_calls);
    let log = emitter::log(&emitter);
    let replica = view.flushes.replica;
    sessions.extend(replica.map(|replica| background::replica_session(&mut emitter, replica)));
    let ended = turns.iter().flatten().filter(|turn| turn.ends);
    let mut ended: Vec<u64> = ended.map(RawTurn::end_ns).collect();
    ended.sort_unstable();
    sessions.extend(background::sessions(&mut emitter, &ended));
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
        foreign_cpu_share: others_share(view),
        devices: syncs::devices(view),
        paths: syncs::paths(view),
        footprints: regions.map(|(role, region)| (*role, region.used)).collect(),
        cached_roles: cache_size::cached_roles(view),
        most_dirty_bytes: dirty_pages::most_dirty_bytes(view),
        observed,
        disabled,
        unassigned: limits::unassigned(view),
        limits: Vec::new(),
    };
    mechanism::strip(&mut work);
    work.limits = limits::limits(view, &work, unexplained);
    work
}

/// Appends to the log: with each commit, or continuously where commits are few and large.
fn appending(view: &View<'_>, commits: usize) -> Appending {
    let appended_bytes = view.flushes.appended_bytes;
    let per_commit = appended_bytes / commits.max(1) as u64;
    if commits == 0 || per_commit > BULK_BYTES {
        let sessions = view.threads(ThreadClass::Session);
        let cpu_ns: u64 = sessions.map(|thread| view.cpu_ns(thread)).sum();
        Appending::PerCpu(appended_bytes as f64 / cpu_ns.max(1) as f64)
    } else {
        Appending::PerCommit(per_commit as u32)
    }
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
    let storage_ns = view.storage_cpu_ns(|used| used.kernel_ns);
    let threads_ns = kernel_ns as f64 - storage_ns as f64;
    (about.foreign_cpu_share + threads_ns / cores_ns).clamp(0.0, 0.95)
}
