//! One burst: threads, their calls and requests while it lasts.

use std::collections::HashMap;

use tierwise_recording::{Block, BurstRows, Call, CallKind, NONE, State, UNKNOWN};

use super::asynchronous::Asynchronous;
use super::blocks::{Blocks, DeviceRange, Told};
use super::calls::{self, Tables, Underway};
use super::checks::Totals;
use super::cores::Cores;
use super::files::Files;
use super::join::{self, Hint};
use super::track::{Phase, Track};
use crate::{Event, EventKind};

/// The present burst.
#[derive(Debug)]
pub(super) struct Burst {
    start_ns: u64,
    end_ns: u64,
    tracks: Vec<Track>,
    /// Of each track, the call under way.
    underway: Vec<Option<Underway>>,
    by_tid: HashMap<i32, usize>,
    blocks: Blocks,
    /// For each block request, the facts known when it was issued.
    hints: Vec<Hint>,
    /// Threads with a sync under way and its file, the oldest first.
    syncing: Vec<(i32, u32)>,
    asynchronous: Asynchronous,
}

impl Burst {
    pub(super) fn new(devices: Vec<DeviceRange>) -> Self {
        Self {
            start_ns: 0,
            end_ns: 0,
            tracks: Vec::new(),
            underway: Vec::new(),
            by_tid: HashMap::new(),
            blocks: Blocks::new(devices),
            hints: Vec::new(),
            syncing: Vec::new(),
            asynchronous: Asynchronous::default(),
        }
    }

    pub(super) fn begin(&mut self, time_ns: u64) {
        self.start_ns = time_ns;
        self.end_ns = time_ns;
        for track in &mut self.tracks {
            track.begin(time_ns);
        }
    }

    pub(super) fn end(&mut self, time_ns: u64) {
        self.end_ns = self.end_ns.max(time_ns);
    }

    /// A thread is said to live.
    pub(super) fn see(&mut self, thread: u32, tid: i32) {
        match self.by_tid.get(&tid) {
            Some(&at) if self.tracks[at].thread == thread => self.tracks[at].alive = true,
            _ => self.appear(thread, tid),
        }
    }

    /// A thread is there without having been announced.
    pub(super) fn appear(&mut self, thread: u32, tid: i32) {
        let mut track = Track::new(thread, tid);
        track.begin(self.start_ns);
        self.add(track);
    }

    pub(super) fn born(&mut self, thread: u32, tid: i32, time_ns: u64) {
        let mut track = Track::new(thread, tid);
        track.born(time_ns);
        self.add(track);
    }

    fn add(&mut self, track: Track) {
        self.by_tid.insert(track.tid, self.tracks.len());
        self.tracks.push(track);
        self.underway.push(None);
    }

    pub(super) fn track(&mut self, tid: i32) -> Option<&mut Track> {
        let at = *self.by_tid.get(&tid)?;
        Some(&mut self.tracks[at])
    }

    /// Index of the thread, or [`NONE`] if it is not ours.
    pub(super) fn thread_of(&self, tid: i32) -> u32 {
        let at = self.by_tid.get(&tid);
        at.map_or(NONE, |&at| self.tracks[at].thread)
    }

    pub(super) fn ended(&mut self, tid: i32, time_ns: u64) {
        if let Some(&at) = self.by_tid.get(&tid) {
            self.close_call(at, time_ns);
            self.tracks[at].dies(time_ns);
        }
    }

    /// A thread of ours enters or leaves a call, or something happens in one.
    pub(super) fn act(&mut self, event: &Event, pid: i32, tables: &mut Tables, cores: &mut Cores) {
        let Some(&at) = self.by_tid.get(&event.tid) else {
            return;
        };
        let track = &mut self.tracks[at];
        let told_at_start = track.phase == Phase::Unseen && event.time_ns == self.start_ns;
        if !told_at_start {
            track.runs(event.time_ns, event.cpu, cores);
        }
        match &event.kind {
            EventKind::Enter { number, arguments } => {
                self.enter(at, pid, event.time_ns, (*number, *arguments), tables);
            }
            EventKind::Exit { number, result } => {
                self.exit(at, pid, event.time_ns, (*number, *result), tables);
            }
            EventKind::Opened(opened) => match &mut self.underway[at] {
                Some(call) => tables.opened(call, &mut track.calls, opened.fd, &opened.path),
                None if opened.fd >= 0 => {
                    let file = tables.files.intern(&opened.path);
                    tables.descriptors.set(pid, opened.fd, file, UNKNOWN);
                }
                None => {}
            },
            EventKind::Replied { begun_ns, status } => {
                track.replied = Some(((*begun_ns).max(self.start_ns), *status))
            }
            _ => {}
        }
    }

    fn enter(
        &mut self,
        at: usize,
        pid: i32,
        time_ns: u64,
        (number, arguments): (u32, [u64; 6]),
        tables: &mut Tables,
    ) {
        self.close_call(at, time_ns);
        let track = &mut self.tracks[at];
        track.acts();
        self.underway[at] = Some(tables.enter(track, pid, time_ns, number, arguments));
        if track.phase == Phase::Unseen {
            track.was_in_call();
        }
        let row = track.calls[track.call as usize];
        if row.kind == CallKind::Sync {
            self.syncing.push((track.tid, row.file));
        }
    }

    fn exit(
        &mut self,
        at: usize,
        pid: i32,
        time_ns: u64,
        (number, result): (u32, i64),
        tables: &mut Tables,
    ) {
        if self.underway[at].is_some_and(|call| !call.is(number)) {
            self.close_call(at, time_ns);
        }
        let track = &mut self.tracks[at];
        match self.underway[at].take() {
            Some(call) => tables.exit(track, pid, time_ns, &call, result),
            None => calls::exit_unentered(track, time_ns, number, result),
        }
        track.acts();
        self.stop_syncing(at);
    }

    /// Ends a call whose exit is never reported.
    fn close_call(&mut self, at: usize, time_ns: u64) {
        if let Some(call) = self.underway[at].take() {
            let track = &mut self.tracks[at];
            if let Some(row) = track.calls.get_mut(call.index as usize) {
                row.end_ns = time_ns;
            }
            track.call = NONE;
            self.stop_syncing(at);
        }
    }

    fn stop_syncing(&mut self, at: usize) {
        let tid = self.tracks[at].tid;
        self.syncing.retain(|&(other, _)| other != tid);
    }

    pub(super) fn issue(&mut self, tid: i32, told: Told) {
        let at = self.by_tid.get(&tid).copied();
        let thread = at.map_or(NONE, |at| self.tracks[at].thread);
        let Some(index) = self.blocks.issue(told, thread) else {
            return;
        };
        let mut syncing = [NONE; 4];
        for (slot, &(_, file)) in syncing.iter_mut().zip(&self.syncing) {
            *slot = file;
        }
        let call = at.and_then(|at| self.call_of(at));
        self.hints.push(Hint { call, syncing });
        let submitting = at.filter(|&at| self.underway[at].is_some_and(|call| call.submits()));
        if let Some(at) = submitting {
            let block = (index, &self.blocks.rows[index]);
            self.asynchronous.issued(&mut self.tracks, at, block);
        }
    }

    fn call_of(&self, at: usize) -> Option<(CallKind, u32)> {
        let call = self.underway[at]?;
        let row = self.tracks[at].calls.get(call.index as usize)?;
        Some((row.kind, row.file))
    }

    /// A request was handed to an io_uring by a thread of ours.
    pub(super) fn submit(&mut self, tid: i32, time_ns: u64, request: u64, operation: u8) {
        if let Some(&at) = self.by_tid.get(&tid) {
            let asked = (request, operation);
            self.asynchronous
                .submit(&mut self.tracks, at, time_ns, asked);
        }
    }

    /// A request of an io_uring is done, under any thread.
    pub(super) fn submitted_done(&mut self, time_ns: u64, request: u64, result: i64) {
        self.asynchronous
            .done(&mut self.tracks, time_ns, request, result);
    }

    pub(super) fn complete(&mut self, told: Told) {
        self.blocks.complete(told);
    }

    /// The rows of the burst, by thread and time. The next burst begins with the threads that still live.
    pub(super) fn finish(&mut self, files: &Files, totals: &mut Totals) -> BurstRows {
        self.stop_all();
        let mut blocks = self.blocks.take();
        join::name_files(&mut blocks, self.blocks.ranges(), &self.hints, files);
        self.asynchronous.place(&mut self.tracks, &blocks, files);
        let ours = files.devices_with_roles();
        let matters = |block: &Block| block.completed_ns > 0 && ours.contains(&block.device);
        let asked = blocks.iter().zip(&self.hints);
        totals.count_blocks(asked.filter(|(block, _)| matters(block)));
        blocks.retain(matters);
        self.tracks.sort_by_key(|track| track.thread);
        totals.count_tracks(&self.tracks, self.end_ns - self.start_ns);
        let (states, calls) = self.number_rows();
        self.clear();
        BurstRows {
            states,
            calls,
            blocks,
        }
    }

    fn stop_all(&mut self) {
        let end_ns = self.end_ns;
        for at in 0..self.tracks.len() {
            self.tracks[at].end(end_ns);
            self.close_call(at, end_ns);
            for call in &mut self.tracks[at].calls {
                call.end_ns = call.end_ns.min(end_ns);
            }
        }
    }

    /// Puts the rows of all threads one after the other, and numbers calls through.
    fn number_rows(&mut self) -> (Vec<State>, Vec<Call>) {
        let mut states = Vec::with_capacity(self.tracks.iter().map(|t| t.states.len()).sum());
        let mut calls = Vec::with_capacity(self.tracks.iter().map(|t| t.calls.len()).sum());
        for track in &mut self.tracks {
            let first = calls.len() as u32;
            states.extend(track.states.drain(..).map(|state| State {
                call: if state.call == NONE {
                    NONE
                } else {
                    state.call + first
                },
                ..state
            }));
            calls.append(&mut track.calls);
        }
        (states, calls)
    }

    fn clear(&mut self) {
        self.hints.clear();
        self.syncing.clear();
        self.tracks.retain(|track| track.phase != Phase::Gone);
        self.underway = self.tracks.iter().map(|_| None).collect();
        self.by_tid.clear();
        for (at, track) in self.tracks.iter_mut().enumerate() {
            track.alive = false;
            self.by_tid.insert(track.tid, at);
        }
    }
}
