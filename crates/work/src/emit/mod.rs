//! Turns written as steps of the work: demands are kept, waits are dropped.
//!
//! Only `extract` may use this module.

mod calls;
mod step_writer;

use tierwise_recording::{NONE, Role, State, ThreadClass};

use crate::constants::{LEAST_TIME_SHARE, PAUSE_NS, WAITER_WAKE_NS};
use crate::emit::step_writer::{FlushCpu, StepWriter};
use crate::log::{LogReplica, flushes_log};
use crate::page_cache::read_cpu::ReadCallCpu;
use crate::page_cache::reuse_distances::ReuseDistances;
use crate::recording_rows::{makes_durable, median};
use crate::recording_view::RecordingView;
use crate::storage;
use crate::storage::{FileSyncs, assumed_sync_script};
use crate::timeline::{ThreadSegment, ThreadSegmentKind, WaitCause, thread_segments};
use crate::transactions::ThreadDependencies;
use crate::transactions::hot_locks;
use crate::transactions::sessions::ClientThreadRequests;
use crate::transactions::turns::RawTurn;
use crate::{CommitGrouping, Delay, LogRules, Session, Step, SyncRequests, Turn, TurnPace};

// Turns written as steps: demands are kept, waits are dropped.

/// How much is appended to the log, and when.
pub(crate) enum LogAppending {
    /// This much with each commit.
    PerCommit(u32),
    /// This many bytes per nanosecond of a session on a core: few commits of much data.
    PerCpu(f64),
}

/// Writes turns as steps for all sessions, and collects data for the log's rules.
pub(crate) struct StepEmitter<'a> {
    pub(crate) view: &'a RecordingView<'a>,
    pub(crate) dependencies: &'a ThreadDependencies,
    pub(crate) grouping: CommitGrouping,
    pub(crate) appending: LogAppending,
    /// Syncs that are no commits.
    pub(crate) syncs: FileSyncs,
    /// Scripts of the leaders' flushes of the log.
    pub(crate) log_scripts: Vec<SyncRequests>,
    /// Processor time in calls that wrote and flushed the log.
    pub(crate) flush_cpu: FlushCpu,
    /// Processor time in calls that read files.
    pub(crate) read_calls: ReadCallCpu,
    reuse_distances: &'a ReuseDistances,
    clients: ClientThreadRequests,
}

impl<'a> StepEmitter<'a> {
    pub(crate) fn new(
        view: &'a RecordingView<'a>,
        dependencies: &'a ThreadDependencies,
        appending: LogAppending,
        reuse_distances: &'a ReuseDistances,
    ) -> Self {
        Self {
            view,
            dependencies,
            grouping: view.flushes.grouping(view),
            appending,
            syncs: FileSyncs::new(view),
            log_scripts: Vec::new(),
            flush_cpu: FlushCpu::default(),
            read_calls: ReadCallCpu::default(),
            reuse_distances,
            clients: ClientThreadRequests::new(view),
        }
    }

    pub(crate) fn turn(&mut self, raw: &RawTurn<'_>, session: &mut Session) {
        self.read_calls.begin_turn();
        let mut writer = self.writer(raw);
        let mut commits = raw.commits.iter().peekable();
        let mut tail = None;
        let tries = hot_locks::lock_attempts_span(self.grouping, raw);
        let second_log_ns = self.second_log_ns(raw);
        for (index, segment) in raw.segments.iter().enumerate() {
            if commits
                .next_if(|commit| commit.segment as usize == index)
                .is_some()
            {
                writer.commit(self.commit_steps());
            }
            let tried = |&(from_ns, to_ns): &(u64, u64)| {
                from_ns <= segment.start_ns && segment.start_ns < to_ns
            };
            if let Some((_, end_ns)) = tries.filter(tried) {
                writer.left_out_until_ns = end_ns;
                if !matches!(segment.kind, ThreadSegmentKind::Cpu { .. }) {
                    continue;
                }
            }
            let before = writer.steps.len();
            writer.asked(segment);
            match segment.kind {
                ThreadSegmentKind::Cpu { waited } => {
                    self.read_calls.ran(segment.start_ns, segment.end_ns);
                    writer.run(segment.start_ns, segment.end_ns, waited);
                }
                ThreadSegmentKind::Ready => {
                    let span = (segment.start_ns, segment.end_ns);
                    if let Some(part) = self.clients.beside(self.view, session.client, span) {
                        writer.client(part);
                    }
                }
                ThreadSegmentKind::Wait { cause, state } => {
                    match cause {
                        // A session that then syncs the second log itself waits once, for its own sync.
                        WaitCause::SecondLog(_) if second_log_ns >= Some(state.end_ns) => {}
                        _ => self.wait(cause, state, session.client, &mut writer),
                    }
                    let after_reply = raw.reply_ns.is_some_and(|reply| reply <= segment.start_ns);
                    if cause == WaitCause::Client && after_reply && tail.is_none() {
                        tail = Some(before);
                    }
                }
                ThreadSegmentKind::Call { call, .. } => self.call(raw, index, call, &mut writer),
            }
        }
        self.flush_cpu.add(writer.stripped);
        let steps = writer.finish();
        session.turns.push(Turn {
            first_step: session.steps.len() as u32,
            steps: steps.len() as u32,
            tail_steps: tail.map_or(0, |tail| trailing_client_steps(&steps, tail)),
            ends: raw.ends,
            recorded_ns: raw.end_ns() - raw.start_ns(),
        });
        session.steps.extend(steps);
    }

    fn writer(&self, raw: &RawTurn<'_>) -> StepWriter<'a> {
        // The engine's own threads write the data that sessions appended.
        let append_per_ns = match self.appending {
            LogAppending::PerCpu(bytes_per_ns)
                if self.view.class(raw.thread) == Some(ThreadClass::Session) =>
            {
                bytes_per_ns
            }
            _ => 0.0,
        };
        let locks = raw.locks.iter();
        let mut planned: Vec<(u64, Step)> = locks
            .map(|&(lock, at_ns)| (at_ns, Step::Lock { lock }))
            .collect();
        if let Some(at_ns) = raw.hidden_commit_ns {
            let last_first = self.commit_steps().into_iter().rev();
            planned.extend(last_first.map(|step| (at_ns, step)));
        }
        let marks = self.dependencies;
        let marks = marks.steps(raw.thread, raw.start_ns(), raw.end_ns());
        StepWriter::new(self.reuse_distances, append_per_ns, marks, planned)
    }

    fn commit_steps(&self) -> Vec<Step> {
        match self.appending {
            LogAppending::PerCommit(size_bytes) => vec![Step::Append { size_bytes }, Step::Commit],
            LogAppending::PerCpu(_) => vec![Step::Commit],
        }
    }

    /// When a turn last syncs the engine's second log itself, if it does.
    fn second_log_ns(&self, raw: &RawTurn<'_>) -> Option<u64> {
        let second = self.view.engine.second_log?;
        let calls = raw.calls();
        let syncs =
            calls.filter(|call| makes_durable(call) && self.view.role(call.file) == Some(second));
        syncs.map(|call| call.start_ns).max()
    }

    /// A wait of a turn; `client` is the thread of the session's client.
    fn wait(
        &mut self,
        cause: WaitCause,
        state: &State,
        client: Option<u32>,
        writer: &mut StepWriter<'_>,
    ) {
        if let Some(number) = self.dependencies.awaited(state) {
            return writer.push(Step::Await { number });
        }
        match cause {
            WaitCause::SecondLog(sync) => {
                if let Some(sync) = self.view.call(sync)
                    && let Some(role) = self.view.role(sync.file)
                {
                    writer.push(self.syncs.sync(self.view, role, sync));
                }
            }
            WaitCause::Other if state.call == NONE => writer.extend(self.fault(state)),
            WaitCause::Client => writer.client(self.clients.part(self.view, state, client)),
            WaitCause::Timer
                if self.grouping != CommitGrouping::Exclusive
                    && !self.dependencies.is_helper(state.thread)
                    && !self.view.flushes.delays.has(state) =>
            {
                writer.push(Step::Delay(Delay {
                    time_ns: state.end_ns - state.start_ns,
                    timer: true,
                }));
            }
            _ => {}
        }
    }
}

/// A session in a loop, without turns.
pub(crate) fn empty_session(name: String, class: ThreadClass, client: Option<u32>) -> Session {
    Session {
        name,
        class,
        client,
        pace: TurnPace::Loop,
        turns: Vec::new(),
        starts: Vec::new(),
        steps: Vec::new(),
    }
}

/// Steps from the client's first after the reply to the end, if none of them is the server's.
fn trailing_client_steps(steps: &[Step], tail: usize) -> u32 {
    let clients = |step: &&Step| {
        matches!(
            step,
            Step::Cpu { client: true, .. } | Step::Delay(Delay { timer: false, .. })
        )
    };
    let count = steps.iter().rev().take_while(clients).count();
    count.min(steps.len() - tail.min(steps.len())) as u32
}

// The rules of the log, from the data collected while all sessions were emitted.

const MOST_SCRIPTS: usize = 256;

/// The log's rules; none if nothing was flushed or appended.
pub(crate) fn log_rules(emitter: &StepEmitter<'_>) -> Option<LogRules> {
    let view = emitter.view;
    let flushes = &view.flushes;
    let region = view.address_space.regions.get(&Role::Log)?;
    if flushes.all.is_empty() && flushes.appended_bytes == 0 {
        return None;
    }
    let scripts = sampled_scripts(&emitter.log_scripts, view.sees(region.device));
    let [leader_cpu_ns, release_cpu_ns, write_cpu_ns] = emitter.flush_cpu.of_one();
    Some(LogRules {
        grouping: emitter.grouping,
        scripts,
        page_bytes: flushes.page_bytes,
        first_sector: 0,
        sectors: region.sectors,
        leader_cpu_ns,
        release_cpu_ns,
        write_cpu_ns,
        wake_ns: waiter_wake_ns(view) as u32,
        flusher_period_ns: flushes.flusher_period_ns(view),
        commit_delay: flushes.delays.rule,
    })
}

/// Scripts sampled evenly from all; an assumed one where the device's requests are not known.
fn sampled_scripts(all: &[SyncRequests], seen: bool) -> Vec<SyncRequests> {
    let working: Vec<&SyncRequests> = all.iter().filter(|script| script.flushes > 0).collect();
    if !seen || working.is_empty() {
        return vec![assumed_sync_script(false)];
    }
    let step = working.len().div_ceil(MOST_SCRIPTS);
    working.into_iter().step_by(step).cloned().collect()
}

/// From the end of a flush until a waiter is woken, per waiter: the median over all.
fn waiter_wake_ns(view: &RecordingView<'_>) -> u64 {
    let waits = view
        .threads(ThreadClass::Session)
        .flat_map(|thread| view.waits(thread));
    let mut woken: Vec<(u64, u32, u64)> = waits
        .filter_map(|wait| {
            let flush = view.flushes.that_woke(wait)?;
            Some((flush.end_ns, flush.thread, wait.end_ns))
        })
        .collect();
    woken.sort_unstable();
    let of_one_flush = woken.chunk_by(|one, other| one.0 == other.0);
    let times = of_one_flush.flat_map(|woken| {
        let ranked = (1..).zip(woken);
        ranked.map(|(rank, (flush_ns, _, woken_ns))| woken_ns.saturating_sub(*flush_ns) / rank)
    });
    median(times.collect()).unwrap_or(WAITER_WAKE_NS.get())
}

// Sessions of the engine's own threads: turns cut at idle waits, with their pace; a second copy of the log.

/// Fewer transactions than these set no pace.
const ENOUGH: usize = 20;

/// The sessions of background threads. `ended` has the end times of transactions, sorted.
pub(crate) fn background_sessions(emitter: &mut StepEmitter<'_>, ended: &[u64]) -> Vec<Session> {
    let view = emitter.view;
    let threads = [ThreadClass::LogWriter, ThreadClass::Background].into_iter();
    let mut threads: Vec<u32> = threads.flat_map(|class| view.threads(class)).collect();
    threads.sort_unstable();
    let own = threads
        .into_iter()
        .filter(|&thread| !view.flushes.is_replica(thread));
    own.filter_map(|thread| background_session(emitter, ended, thread))
        .collect()
}

fn background_session(
    emitter: &mut StepEmitter<'_>,
    ended: &[u64],
    thread: u32,
) -> Option<Session> {
    let view = emitter.view;
    let helper = emitter.dependencies.is_helper(thread);
    let recorded = &view.recording.threads[thread as usize];
    let mut session = empty_session(recorded.name.clone(), recorded.class, None);
    let mut begins = Vec::new();
    for (burst, segments) in thread_segments(view, thread) {
        let turns = match helper {
            true => vec![segments],
            false => split_at_idle_waits(segments),
        };
        let works =
            |segments: &Vec<ThreadSegment>| segments.iter().any(|segment| segment.wait().is_none());
        for segments in turns.into_iter().filter(works) {
            let raw = RawTurn {
                thread,
                burst,
                segments,
                ..RawTurn::default()
            };
            begins.push(raw.start_ns());
            emitter.turn(&raw, &mut session);
        }
    }
    if !helper {
        set_background_pace(emitter, &mut session, ended, &begins);
    }
    let least_ns = view.span_ns() as f64 * LEAST_TIME_SHARE.get();
    (session_moves_data(&session) || session_cpu_ns(&session) > least_ns).then_some(session)
}

/// Stretches of work between idle waits; the idle waits are left out.
fn split_at_idle_waits(segments: Vec<ThreadSegment<'_>>) -> Vec<Vec<ThreadSegment<'_>>> {
    use WaitCause::{LogDevice, Read, Sync, Write};
    let idle = |segment: &ThreadSegment| {
        let own = matches!(segment.wait(), Some((Read | Write | Sync | LogDevice, _)));
        segment.wait().is_some() && !own && segment.time_ns() >= PAUSE_NS.get()
    };
    segments.split(idle).map(<[_]>::to_vec).collect()
}

/// Work that moves data follows the transactions that caused it; all other work follows time.
fn set_background_pace(
    emitter: &StepEmitter<'_>,
    session: &mut Session,
    ended: &[u64],
    begins: &[u64],
) {
    let begins = begins.iter();
    if session_moves_data(session) && ended.len() >= ENOUGH {
        session.pace = TurnPace::Work;
        let before = |begin: &u64| ended.partition_point(|end| end < begin) as u64;
        session.starts = begins.map(before).collect();
    } else {
        session.pace = TurnPace::Time;
        let since = |begin: &u64| emitter.view.in_bursts_ns(0, *begin);
        session.starts = begins.map(since).collect();
    }
}

fn session_moves_data(session: &Session) -> bool {
    use Step::{Await, Cpu, Delay, Signal};
    let mut steps = session.steps.iter();
    steps.any(|step| !matches!(step, Cpu { .. } | Delay(_) | Signal { .. } | Await { .. }))
}

fn session_cpu_ns(session: &Session) -> f64 {
    let time = |step: &Step| match step {
        Step::Cpu { time_ns, .. } => f64::from(*time_ns),
        _ => 0.0,
    };
    session.steps.iter().map(time).sum()
}

/// Both threads of a second copy of the log as one session, with a turn for each flush of the copy.
pub(crate) fn replica_session(emitter: &mut StepEmitter<'_>, replica: LogReplica) -> Session {
    let view = emitter.view;
    let calls = view.calls(replica.receiver).iter();
    let scripts: Vec<_> = calls
        .filter(|call| flushes_log(view, call))
        .map(|call| storage::sync_script(view, Role::Log, call))
        .collect();
    let cpu_ns = view.cpu_ns(replica.sender) + view.cpu_ns(replica.receiver);
    let half_ns = cpu_ns / scripts.len().max(1) as u64 / 2;
    let half = Step::Cpu {
        time_ns: u32::try_from(half_ns).unwrap_or(u32::MAX),
        client: false,
    };
    let recorded = &view.recording.threads[replica.receiver as usize];
    let mut session = empty_session(recorded.name.clone(), ThreadClass::LogWriter, None);
    for script in scripts {
        let sync = Step::Sync {
            role: Role::Log,
            script: emitter.syncs.add(script),
        };
        let mut steps = vec![Step::AwaitLog, half, sync, half];
        steps.extend(replica.waited_for.then_some(Step::Acknowledge));
        session.turns.push(Turn {
            first_step: session.steps.len() as u32,
            steps: steps.len() as u32,
            tail_steps: 0,
            ends: false,
            recorded_ns: 0,
        });
        session.steps.extend(steps);
    }
    session
}
