//! Turns written as steps: demands stay, waits go.

use tierwise_recording::{Call, CallKind, NONE, Role, ThreadClass};

use crate::checkpoints::Checkpoints;
use crate::client::Clients;
use crate::cut::RawTurn;
use crate::flush_cpu::FlushCpu;
use crate::flushes::LogFlushes;
use crate::peers::Peers;
use crate::pieces::{Piece, PieceKind};
use crate::shape::Meaning;
use crate::syncs::Syncs;
use crate::view::{View, makes_durable};
use crate::wait::Why;
use crate::writer::{Writer, commit_steps};
use crate::{Away, Grouping, Session, Step, SyncScript, Turn, database_lock, pages, scripts};

/// Flushes of the log whose scripts are looked at.
const MOST_LOG_SCRIPTS: usize = 4096;

/// What is appended to the log, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Appending {
    /// So much with each commit.
    PerCommit(u32),
    /// So many bytes in a nanosecond of a session on a core: few commits of much data.
    PerCpu(f64),
}

/// What all sessions' emission shares, and collects.
pub(crate) struct Emitter<'a> {
    pub(crate) view: &'a View<'a>,
    pub(crate) flushes: &'a LogFlushes,
    pub(crate) peers: &'a Peers,
    pub(crate) grouping: Grouping,
    pub(crate) appending: Appending,
    /// Checkpoints that follow the work done.
    pub(crate) checkpoints: Option<&'a Checkpoints>,
    /// Processor time that one recorded event took.
    pub(crate) event_ns: f64,
    /// Syncs that are no commits.
    pub(crate) syncs: Syncs,
    /// Scripts of flushes of the log by those who led.
    pub(crate) log_scripts: Vec<SyncScript>,
    /// Processor time in calls that wrote and flushed the log.
    pub(crate) flush_cpu: FlushCpu,
    clients: Clients,
}

impl<'a> Emitter<'a> {
    pub(crate) fn new(
        view: &'a View<'a>,
        flushes: &'a LogFlushes,
        peers: &'a Peers,
        appending: Appending,
        checkpoints: Option<&'a Checkpoints>,
    ) -> Self {
        Self {
            view,
            flushes,
            peers,
            grouping: flushes.grouping(view),
            appending,
            checkpoints,
            event_ns: view.event_ns(),
            syncs: Syncs::new(view),
            log_scripts: Vec::new(),
            flush_cpu: FlushCpu::default(),
            clients: Clients::new(view),
        }
    }

    /// Appends a turn to a session.
    pub(crate) fn turn(&mut self, raw: &RawTurn, meaning: &Meaning, session: &mut Session) {
        let marks = self.peers.marks(raw.thread, raw.start_ns(), raw.end_ns());
        let mut writer = Writer::new(
            self.event_ns,
            marks,
            self.append_per_ns(),
            &self.view.misses,
        );
        writer.plan(meaning, self.append_bytes());
        let mut commits = raw.commits.iter().peekable();
        let mut tail = None;
        let tries = database_lock::tries(self.grouping, raw);
        for (index, piece) in raw.pieces.iter().enumerate() {
            if let Some(commit) = commits.next_if(|commit| commit.piece as usize == index) {
                writer.commit(self.commit_steps(raw.thread, commit.end_ns));
            }
            if self.is_left_out((raw.thread, tries), piece, &mut writer) {
                continue;
            }
            let before = writer.len();
            writer.asked(piece);
            match piece.kind {
                PieceKind::Cpu {
                    after_wait_ns,
                    core,
                } => {
                    writer.is_on(core);
                    writer.run(piece.start_ns, piece.end_ns, after_wait_ns);
                }
                PieceKind::Ready => {}
                PieceKind::Wait { why, state } => {
                    let after_reply = raw.reply_ns.is_some_and(|reply| reply <= piece.start_ns);
                    self.wait((raw, piece), (why, state), session.client, &mut writer);
                    if matches!(why, Why::Read | Why::Write | Why::Sync | Why::LogDevice) {
                        writer.waits_in_call();
                    }
                    if why == Why::Client && after_reply && tail.is_none() {
                        tail = Some(before);
                    }
                }
                PieceKind::Call { call } => self.call(raw, index, call, &mut writer),
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
            burst: raw.burst,
        });
        session.steps.extend(steps);
    }

    /// The steps of a commit of a thread that ended then.
    fn commit_steps(&self, thread: u32, end_ns: u64) -> Vec<Step> {
        let known = self.checkpoints.map(|found| found.commit(thread, end_ns));
        known.unwrap_or_else(|| commit_steps(self.append_bytes()))
    }

    /// Whether a piece is no step: of a checkpoint of a thread, or of what it tried in vain.
    fn is_left_out(
        &self,
        (thread, tries): (u32, Option<(u64, u64)>),
        piece: &Piece,
        writer: &mut Writer,
    ) -> bool {
        let at_ns = piece.start_ns;
        let found = self.checkpoints;
        let moved = found.and_then(|found| found.left_out(thread, at_ns));
        let tried = tries.filter(|&(from_ns, to_ns)| from_ns <= at_ns && at_ns < to_ns);
        let Some(end_ns) = moved.or(tried.map(|tried| tried.1)) else {
            return false;
        };
        writer.leave_out_until(end_ns);
        !matches!(piece.kind, PieceKind::Cpu { .. })
    }

    fn append_bytes(&self) -> Option<u32> {
        match self.appending {
            Appending::PerCommit(bytes) => Some(bytes),
            Appending::PerCpu(_) => None,
        }
    }

    fn append_per_ns(&self) -> f64 {
        match self.appending {
            Appending::PerCommit(_) => 0.0,
            Appending::PerCpu(bytes_per_ns) => bytes_per_ns,
        }
    }

    /// A wait of a turn, why and in which state; `client` is the thread of the session's client.
    fn wait(
        &mut self,
        (raw, piece): (&RawTurn, &Piece),
        (why, state): (Why, u32),
        client: Option<u32>,
        writer: &mut Writer,
    ) {
        if let Some(number) = self.peers.awaited(raw.thread, state) {
            writer.push(Step::Await { number });
            return;
        }
        match why {
            Why::Other => {
                let state = &self.view.states(raw.thread)[state as usize];
                if state.call == NONE {
                    writer.extend(pages::fault(self.view, state));
                }
            }
            Why::Client => {
                let state = &self.view.states(raw.thread)[state as usize];
                let part = self.clients.part(self.view, state, client);
                writer.client(part);
            }
            Why::Timer
                if self.grouping != Grouping::Exclusive && !self.peers.is_helper(raw.thread) =>
            {
                writer.push(Step::Away(Away {
                    time_ns: piece.time_ns(),
                    timer: true,
                }))
            }
            _ => {}
        }
    }

    fn call(&mut self, raw: &RawTurn, index: usize, number: u32, writer: &mut Writer) {
        let Some(call) = self.view.call(number) else {
            return;
        };
        writer.count_call();
        let waits = waits_within(&raw.pieces[index..], call.end_ns);
        if call.failed {
            return writer.extend(pages::reads_within(self.view, call, &waits));
        }
        let role = self.view.role(call.file);
        match (call.kind, role) {
            (CallKind::Await, _) => writer.drain(),
            (CallKind::Write | CallKind::Sync, Some(Role::Log)) => self.log(raw, call, writer),
            (CallKind::Read, Some(_)) => writer.extend(pages::read(self.view, call, &waits)),
            (CallKind::Write, Some(_)) => {
                self.syncs.grow(call);
                writer.extend(pages::write(self.view, call, &waits));
            }
            _ => writer.extend(pages::reads_within(self.view, call, &waits)),
        }
        match (call.kind, role) {
            (CallKind::Sync, Some(role)) if role != Role::Log => {
                writer.push(self.durable(role, call));
            }
            (CallKind::Resize, Some(_)) if call.size_bytes == 0 => {
                writer.extend(self.syncs.forget(self.view, call));
            }
            _ => {}
        }
    }

    /// A file is made durable, or a part of it is given to the device already.
    fn durable(&mut self, role: Role, call: &Call) -> Step {
        if makes_durable(call) {
            return self.syncs.sync(self.view, role, call);
        }
        let part = self.view.space.of_call(self.view, call);
        let (role, sector, sectors) = part.unwrap_or((role, 0, 0));
        Step::WriteBack {
            role,
            sector,
            sectors,
        }
    }

    /// A write or flush of the log: part of a commit, else an append or a sync of its own.
    fn log(&mut self, raw: &RawTurn, call: &Call, writer: &mut Writer) {
        let at = call.start_ns;
        let commits = raw
            .commits
            .iter()
            .any(|c| c.start_ns <= at && at <= c.end_ns);
        let flush = self.flushes.has(raw.thread, at);
        let by_session = self.view.class(raw.thread) == Some(ThreadClass::Session);
        if commits {
            writer.strip_until(call.end_ns);
            self.flush_cpu.count(flush);
        } else if by_session && call.kind == CallKind::Write {
            if let Appending::PerCommit(_) = self.appending {
                let size_bytes = u32::try_from(call.size_bytes).unwrap_or(u32::MAX);
                writer.push(Step::Append { size_bytes });
            }
        } else if by_session && !flush && makes_durable(call) {
            writer.push(self.syncs.sync(self.view, Role::Log, call));
        }
        if flush && self.log_scripts.len() < MOST_LOG_SCRIPTS {
            let script = scripts::script(self.view, Role::Log, call);
            self.log_scripts.push(script);
        }
    }
}

/// Steps from the client's first after the reply to the end, if nothing of the server's is among them.
fn trailing(steps: &[Step], tail: usize) -> u32 {
    let clients = |step: &&Step| {
        matches!(
            step,
            Step::Cpu { client: true, .. } | Step::Away(Away { timer: false, .. })
        )
    };
    let count = steps.iter().rev().take_while(clients).count();
    count.min(steps.len() - tail.min(steps.len())) as u32
}

/// From when to when a thread waited within a call that begins with the first piece.
fn waits_within(pieces: &[Piece], end_ns: u64) -> Vec<(u64, u64)> {
    let inside = pieces.iter().take_while(|piece| piece.start_ns < end_ns);
    let waits = inside.filter(|piece| matches!(piece.kind, PieceKind::Wait { .. }));
    waits.map(|piece| (piece.start_ns, piece.end_ns)).collect()
}
