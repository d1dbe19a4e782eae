//! Turns written as steps: demands stay, waits go.

use std::collections::BTreeMap;

use tierwise_recording::{Call, CallKind, Role, ThreadClass, UNKNOWN};

use crate::client::Clients;
use crate::cut::RawTurn;
use crate::devices::has_blocks;
use crate::flush_cpu::FlushCpu;
use crate::flushes::LogFlushes;
use crate::peers::Peers;
use crate::pieces::{Piece, PieceKind};
use crate::shape::Meaning;
use crate::view::{View, makes_durable};
use crate::wait::Why;
use crate::writer::Writer;
use crate::{Away, Grouping, Session, Step, SyncScript, Turn, pages, scripts};

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
    /// Processor time that one recorded event took.
    pub(crate) event_ns: f64,
    /// Scripts of syncs that are no commits.
    pub(crate) scripts: Vec<SyncScript>,
    /// Scripts of flushes of the log by those who led.
    pub(crate) log_scripts: Vec<SyncScript>,
    /// Processor time in calls that wrote and flushed the log.
    pub(crate) flush_cpu: FlushCpu,
    clients: Clients,
    /// Of each device: whether requests to it were recorded.
    seen: Vec<bool>,
    /// How far each file was written, and whether that was further than at its last sync.
    ends: BTreeMap<u32, (u64, bool)>,
}

impl<'a> Emitter<'a> {
    pub(crate) fn new(
        view: &'a View<'a>,
        flushes: &'a LogFlushes,
        peers: &'a Peers,
        appending: Appending,
    ) -> Self {
        let cost = view.recording.about.cost.as_ref();
        Self {
            view,
            flushes,
            peers,
            grouping: flushes.grouping(view),
            appending,
            event_ns: cost.map_or(0.0, |cost| cost.event_cpu_ns.clamp(0.0, 5_000.0)),
            scripts: Vec::new(),
            log_scripts: Vec::new(),
            flush_cpu: FlushCpu::default(),
            clients: Clients::new(view),
            seen: has_blocks(view),
            ends: BTreeMap::new(),
        }
    }

    /// Appends a turn to a session.
    pub(crate) fn turn(&mut self, raw: &RawTurn, meaning: &Meaning, session: &mut Session) {
        let signals = self.peers.signals(raw.thread, raw.start_ns(), raw.end_ns());
        let mut writer = Writer::new(
            self.event_ns,
            signals,
            self.append_per_ns(),
            &self.view.misses,
        );
        writer.plan(meaning, self.append_bytes());
        let mut commits = raw.commits.iter().peekable();
        let mut tail = None;
        for (index, piece) in raw.pieces.iter().enumerate() {
            if commits
                .next_if(|commit| commit.piece as usize == index)
                .is_some()
            {
                writer.commit(self.append_bytes());
            }
            let before = writer.len();
            writer.asked(piece);
            match piece.kind {
                PieceKind::Cpu { after_wait_ns } => {
                    writer.run(piece.start_ns, piece.end_ns, after_wait_ns);
                }
                PieceKind::Ready => {}
                PieceKind::Wait { why, state } => {
                    let after_reply = raw.reply_ns.is_some_and(|reply| reply <= piece.start_ns);
                    self.wait((raw, piece), (why, state), session.client, &mut writer);
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
        if call.failed {
            return;
        }
        let role = self.view.role(call.file);
        match (call.kind, role) {
            (CallKind::Await, _) => writer.drain(),
            (CallKind::Read, None) => {
                let waited = last_wait(&raw.pieces[index..], call.end_ns);
                writer.extend(pages::unnamed_read(self.view, call, waited));
            }
            (_, None) => {}
            (CallKind::Write | CallKind::Sync, Some(Role::Log)) => self.log(raw, call, writer),
            (CallKind::Read, Some(_)) => {
                let waited = last_wait(&raw.pieces[index..], call.end_ns);
                writer.extend(pages::read(self.view, call, waited));
            }
            (CallKind::Write, Some(_)) => {
                self.grow(call);
                writer.extend(pages::write(self.view, call));
            }
            (CallKind::Sync, Some(role)) if makes_durable(call) => {
                let script = self.sync(role, call);
                writer.push(Step::Sync { role, script });
            }
            (CallKind::Resize, Some(_)) if call.size_bytes == 0 => self.forget(call, writer),
            _ => {}
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
            let script = self.sync(Role::Log, call);
            let role = Role::Log;
            writer.push(Step::Sync { role, script });
        }
        if flush && self.log_scripts.len() < MOST_LOG_SCRIPTS {
            let script = scripts::script(self.view, Role::Log, call);
            self.log_scripts.push(script);
        }
    }

    fn sync(&mut self, role: Role, call: &Call) -> u32 {
        let grew = self
            .ends
            .get_mut(&call.file)
            .map(|end| std::mem::take(&mut end.1));
        let device = self.view.device_of(call.file) as usize;
        let known = self.seen.get(device).copied().unwrap_or(false);
        let script = if known {
            scripts::script(self.view, role, call)
        } else {
            scripts::assumed(grew.unwrap_or(false))
        };
        self.scripts.push(script);
        self.scripts.len() as u32 - 1
    }

    fn grow(&mut self, call: &Call) {
        if call.offset_bytes == UNKNOWN {
            return;
        }
        let end = call.offset_bytes.saturating_add(call.size_bytes);
        let known = self.ends.entry(call.file).or_insert((end, false));
        if end > known.0 {
            *known = (end, true);
        }
    }

    /// What a deleted or shortened file held is never written.
    fn forget(&mut self, call: &Call, writer: &mut Writer) {
        let Some((role, sector, _)) = self.view.space.of_call(self.view, call) else {
            return;
        };
        let from = if call.offset_bytes == UNKNOWN {
            0
        } else {
            call.offset_bytes
        };
        let size = self.ends.get(&call.file).map_or(0, |end| end.0);
        let sectors = u32::try_from(size.saturating_sub(from) / 512).unwrap_or(u32::MAX);
        if sectors > 0 {
            writer.push(Step::Forget {
                role,
                sector,
                sectors,
            });
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

/// End of the last wait within a call that begins with the first piece.
fn last_wait(pieces: &[Piece], end_ns: u64) -> Option<u64> {
    let inside = pieces.iter().take_while(|piece| piece.start_ns < end_ns);
    let waits = inside.filter(|piece| matches!(piece.kind, PieceKind::Wait { .. }));
    waits.last().map(|piece| piece.end_ns)
}
