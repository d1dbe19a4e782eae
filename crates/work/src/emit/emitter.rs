//! Turns written as steps: demands are kept, waits are dropped.

use tierwise_recording::{NONE, ThreadClass};

use crate::emit::file_steps;
use crate::emit::step_writer::{StepWriter, commit_steps};
use crate::index::calls::makes_durable;
use crate::index::view::View;
use crate::log::checkpoints::Checkpoints;
use crate::log::flush_cpu::FlushCpu;
use crate::log::flushes::LogFlushes;
use crate::storage::syncs::Syncs;
use crate::timeline::segments::{Segment, SegmentKind};
use crate::timeline::wait::{WaitCause, second_log_sync};
use crate::transactions::clients::Clients;
use crate::transactions::database_lock;
use crate::transactions::thread_dependencies::ThreadDependencies;
use crate::transactions::turn_meaning::Meaning;
use crate::transactions::turns::RawTurn;
use crate::{Delay, Grouping, Session, Step, SyncScript, Turn};

/// How much is appended to the log, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Appending {
    /// This much with each commit.
    PerCommit(u32),
    /// This many bytes per nanosecond of a session on a core: few commits of much data.
    PerCpu(f64),
}

/// Writes turns as steps for all sessions, and collects data for the log's rules.
pub(crate) struct Emitter<'a> {
    pub(crate) view: &'a View<'a>,
    pub(crate) flushes: &'a LogFlushes,
    pub(crate) dependencies: &'a ThreadDependencies,
    pub(crate) grouping: Grouping,
    pub(crate) appending: Appending,
    /// Checkpoints triggered by the pages in the log.
    pub(crate) checkpoints: Option<&'a Checkpoints>,
    /// Syncs that are no commits.
    pub(crate) syncs: Syncs,
    /// Scripts of the leaders' flushes of the log.
    pub(crate) log_scripts: Vec<SyncScript>,
    /// Processor time in calls that wrote and flushed the log.
    pub(crate) flush_cpu: FlushCpu,
    clients: Clients,
}

impl<'a> Emitter<'a> {
    pub(crate) fn new(
        view: &'a View<'a>,
        flushes: &'a LogFlushes,
        dependencies: &'a ThreadDependencies,
        appending: Appending,
        checkpoints: Option<&'a Checkpoints>,
    ) -> Self {
        Self {
            view,
            flushes,
            dependencies,
            grouping: flushes.grouping(view),
            appending,
            checkpoints,
            syncs: Syncs::new(view),
            log_scripts: Vec::new(),
            flush_cpu: FlushCpu::default(),
            clients: Clients::new(view),
        }
    }

    /// Appends a turn to a session.
    pub(crate) fn turn(&mut self, raw: &RawTurn, meaning: &Meaning, session: &mut Session) {
        let marks = self
            .dependencies
            .marks(raw.thread, raw.start_ns(), raw.end_ns());
        let mut writer = StepWriter::new(
            marks,
            self.append_per_ns(raw.thread),
            &self.view.reuse_distances,
        );
        writer.plan(meaning, self.append_bytes());
        let mut commits = raw.commits.iter().peekable();
        let mut tail = None;
        let tries = database_lock::tries(self.grouping, raw);
        for (index, segment) in raw.segments.iter().enumerate() {
            if let Some(commit) = commits.next_if(|commit| commit.segment as usize == index) {
                writer.commit(self.commit_steps(raw.thread, commit.end_ns));
            }
            if self.is_left_out((raw.thread, tries), segment, &mut writer) {
                continue;
            }
            let before = writer.len();
            writer.asked(segment);
            match segment.kind {
                SegmentKind::Cpu { waited } => {
                    writer.run(segment.start_ns, segment.end_ns, waited);
                }
                SegmentKind::Ready => {}
                SegmentKind::Wait { cause, state } => {
                    let after_reply = raw.reply_ns.is_some_and(|reply| reply <= segment.start_ns);
                    self.wait((raw, segment), (cause, state), session.client, &mut writer);
                    if cause == WaitCause::Client && after_reply && tail.is_none() {
                        tail = Some(before);
                    }
                }
                SegmentKind::Call { call } => self.call(raw, index, call, &mut writer),
            }
        }
        self.flush_cpu.add(writer.stripped());
        let steps = writer.finish();
        session.turns.push(Turn {
            first_step: session.steps.len() as u32,
            steps: steps.len() as u32,
            tail_steps: tail.map_or(0, |tail| trailing(&steps, tail)),
            ends: meaning.ends,
            recorded_ns: raw.end_ns() - raw.start_ns(),
        });
        session.steps.extend(steps);
    }

    /// The steps of a commit of a thread that ended at that instant.
    fn commit_steps(&self, thread: u32, end_ns: u64) -> Vec<Step> {
        let known = self.checkpoints.map(|found| found.commit(thread, end_ns));
        known.unwrap_or_else(|| commit_steps(self.append_bytes()))
    }

    /// Whether a segment is no step: part of a thread's checkpoint, or of a failed attempt.
    fn is_left_out(
        &self,
        (thread, tries): (u32, Option<(u64, u64)>),
        segment: &Segment,
        writer: &mut StepWriter,
    ) -> bool {
        let at_ns = segment.start_ns;
        let found = self.checkpoints;
        let moved = found.and_then(|found| found.left_out(thread, at_ns));
        let tried = tries.filter(|&(from_ns, to_ns)| from_ns <= at_ns && at_ns < to_ns);
        let Some(end_ns) = moved.or(tried.map(|tried| tried.1)) else {
            return false;
        };
        writer.leave_out_until(end_ns);
        !matches!(segment.kind, SegmentKind::Cpu { .. })
    }

    fn append_bytes(&self) -> Option<u32> {
        match self.appending {
            Appending::PerCommit(bytes) => Some(bytes),
            Appending::PerCpu(_) => None,
        }
    }

    /// Whether the thread is a session's: the engine's own threads write the data that sessions appended.
    fn append_per_ns(&self, thread: u32) -> f64 {
        match self.appending {
            Appending::PerCpu(bytes_per_ns)
                if self.view.class(thread) == Some(ThreadClass::Session) =>
            {
                bytes_per_ns
            }
            _ => 0.0,
        }
    }

    /// Whether a turn syncs the engine's second log itself after an instant.
    fn syncs_second_log(&self, raw: &RawTurn, after_ns: u64) -> bool {
        let second = self.view.engine.second_log;
        let syncs = |segment: &Segment| match segment.kind {
            SegmentKind::Call { call } => (self.view.call(call)).is_some_and(|call| {
                call.start_ns >= after_ns
                    && makes_durable(call)
                    && self.view.role(call.file) == second
            }),
            _ => false,
        };
        second.is_some() && raw.segments.iter().any(syncs)
    }

    /// A wait of a turn, with its cause and state; `client` is the thread of the session's client.
    fn wait(
        &mut self,
        (raw, segment): (&RawTurn, &Segment),
        (cause, state): (WaitCause, u32),
        client: Option<u32>,
        writer: &mut StepWriter,
    ) {
        if let Some(number) = self.dependencies.awaited(raw.thread, state) {
            writer.push(Step::Await { number });
            return;
        }
        match cause {
            WaitCause::SecondLog => {
                let state = &self.view.states(raw.thread)[state as usize];
                if let Some(sync) = second_log_sync(self.view, state)
                    && !self.syncs_second_log(raw, segment.end_ns)
                    && let Some(role) = self.view.role(sync.file)
                {
                    writer.push(self.syncs.sync(self.view, role, sync));
                }
            }
            WaitCause::Other => {
                let state = &self.view.states(raw.thread)[state as usize];
                if state.call == NONE {
                    writer.extend(file_steps::fault(self.view, state));
                }
            }
            WaitCause::Client => {
                let state = &self.view.states(raw.thread)[state as usize];
                let part = self.clients.part(self.view, state, client);
                writer.client(part);
            }
            WaitCause::Timer
                if self.grouping != Grouping::Exclusive
                    && !self.dependencies.is_helper(raw.thread)
                    && !self
                        .flushes
                        .delays
                        .has(&self.view.states(raw.thread)[state as usize]) =>
            {
                writer.push(Step::Delay(Delay {
                    time_ns: segment.time_ns(),
                    timer: true,
                }))
            }
            _ => {}
        }
    }
}

/// Steps from the client's first after the reply to the end, if none of them is the server's.
fn trailing(steps: &[Step], tail: usize) -> u32 {
    let clients = |step: &&Step| {
        matches!(
            step,
            Step::Cpu { client: true, .. } | Step::Delay(Delay { timer: false, .. })
        )
    };
    let count = steps.iter().rev().take_while(clients).count();
    count.min(steps.len() - tail.min(steps.len())) as u32
}
