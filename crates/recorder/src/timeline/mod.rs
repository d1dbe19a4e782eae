//! Turns events into rows: states of each thread, its calls, and requests to devices.
//!
//! Pure: the caller traces and passes in the events and its facts about threads and files. A switch that the
//! kernel does not report is inferred from the waking before it and the first event after it; a waking may
//! come before the switch that it answers; calls may be under way when a burst begins or ends.
//!
//! Not modelled: descriptors passed over sockets, files of an executed program that were to be closed, and
//! devices stacked on others (their requests are recorded of the lowest one).

mod blocks;
mod calls;
mod checks;
mod files;
mod request_files;
pub(crate) mod syscalls;
#[cfg(test)]
mod tests;
mod thread_track;

use std::collections::{BTreeSet, HashMap};

use blocks::BurstRequests;
use calls::ProcessFileTables;
use checks::CheckTotals;
use request_files::{AsynchronousCalls, RequestHint};
use thread_track::{CoreStates, ThreadPhase, ThreadTrack};
use tierwise_recording::{
    Block, BurstRows, Call, CallKind, Check, File, NONE, State, Thread, ThreadClass, UNKNOWN,
};

use crate::trace_event::{BlockRequest, SwitchedOutState, TraceEvent, TraceEventKind};

pub use blocks::DeviceRange;
pub use files::FileExtent;
pub(crate) use files::{ExtentMap, FileFacts};

/// Makes rows of events, a burst at a time.
///
/// A burst: [`Timeline::see_thread`] and [`Timeline::see_open`] for what is known when it begins (a thread that
/// is not seen again since the last burst counts only if an event shows it); [`Timeline::push`] its events;
/// [`Timeline::describe_file`] for [`Timeline::paths_to_resolve`]; [`Timeline::finish_burst`].
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    threads: Vec<Thread>,
    /// The latest thread of each id.
    by_tid: HashMap<i32, u32>,
    /// Threads of class `Other`, which were taken for background threads until they are seen to talk.
    presumed: BTreeSet<u32>,
    tables: ProcessFileTables,
    cores: CoreStates,
    totals: CheckTotals,
    /// Begin and end of the present burst, to which all that follows belongs.
    start_ns: u64,
    end_ns: u64,
    tracks: Vec<ThreadTrack>,
    track_of: HashMap<i32, usize>,
    blocks: BurstRequests,
    /// For each block request, the facts known when it was issued.
    hints: Vec<RequestHint>,
    /// Threads with a sync under way and its file, the oldest first.
    syncing: Vec<(i32, u32)>,
    asynchronous: AsynchronousCalls,
}

impl Timeline {
    /// Begins with devices whose block requests are wanted.
    pub(crate) fn new(devices: Vec<DeviceRange>) -> Self {
        Self {
            blocks: BurstRequests::new(devices),
            ..Self::default()
        }
    }

    /// A thread lives when the next burst begins. Gives its index. One of class `Other` is judged by what it does.
    pub(crate) fn see_thread(
        &mut self,
        pid: i32,
        tid: i32,
        name: &str,
        class: ThreadClass,
    ) -> usize {
        let known = self.by_tid.get(&tid).copied();
        let thread = match known.filter(|&thread| self.threads[thread as usize].pid == pid) {
            Some(thread) => {
                name.clone_into(&mut self.threads[thread as usize].name);
                self.set_class(thread as usize, class);
                thread
            }
            None => self.add_thread(pid, tid, name.to_owned(), class),
        };
        match self.track_of.get(&tid) {
            Some(&at) if self.tracks[at].thread == thread => self.tracks[at].alive = true,
            _ => _ = self.appear(thread, tid),
        }
        thread as usize
    }

    fn add_thread(&mut self, pid: i32, tid: i32, name: String, class: ThreadClass) -> u32 {
        let thread = self.threads.len() as u32;
        self.threads.push(Thread {
            pid,
            tid,
            name,
            class,
        });
        self.by_tid.insert(tid, thread);
        thread
    }

    /// A thread is there without having been announced. Gives the index of its track.
    fn appear(&mut self, thread: u32, tid: i32) -> usize {
        self.add_track(ThreadTrack::new(
            thread,
            tid,
            ThreadPhase::Unseen,
            self.start_ns,
        ))
    }

    fn add_track(&mut self, track: ThreadTrack) -> usize {
        let at = self.tracks.len();
        self.track_of.insert(track.tid, at);
        self.tracks.push(track);
        at
    }

    /// A process has a file open; the path as the kernel shows it, `socket:[1]` for a socket.
    pub(crate) fn see_open(&mut self, pid: i32, fd: i32, path: &str) {
        let file = self.tables.files.intern(path);
        self.tables.descriptors.set(pid, fd, file, UNKNOWN);
    }

    /// Forgets which files a process has open, before they are read anew.
    pub(crate) fn forget_opens(&mut self, pid: i32) {
        self.tables.descriptors.forget(pid);
    }

    /// Files that were first seen, written or resized since they were last described, in the order of their index.
    pub(crate) fn paths_to_resolve(&self) -> Vec<(u32, String)> {
        self.tables.files.to_resolve()
    }

    /// Sets the role of a file and its place on a device.
    pub(crate) fn describe_file(&mut self, file: u32, facts: FileFacts) {
        self.tables.files.describe(file, facts);
    }

    /// Sets the class of a thread; `Other` leaves it to its calls.
    pub(crate) fn set_class(&mut self, thread: usize, class: ThreadClass) {
        if class != ThreadClass::Other {
            self.threads[thread].class = class;
        }
    }

    pub(crate) fn threads(&self) -> &[Thread] {
        &self.threads
    }

    pub(crate) fn files(&self) -> &[File] {
        &self.tables.files.rows
    }

    /// Checks of how far the rows can be trusted.
    pub(crate) fn checks(&self) -> Vec<Check> {
        self.totals.checks(&self.cores)
    }

    /// Takes the next event, in order of time.
    pub(crate) fn push(&mut self, event: TraceEvent) {
        let TraceEvent {
            time_ns,
            cpu,
            tid,
            kind,
        } = event;
        match kind {
            TraceEventKind::BurstStart => self.begin(time_ns),
            TraceEventKind::BurstEnd => self.end_ns = self.end_ns.max(time_ns),
            TraceEventKind::Switch {
                previous,
                state,
                next,
            } => self.switch(time_ns, cpu, (previous, state), next),
            TraceEventKind::Waking {
                woken,
                target,
                interrupt,
            } => {
                let waker = self.thread_of(if interrupt { 0 } else { tid });
                if let Some(track) = self.track(woken) {
                    track.woken(time_ns, target, waker);
                }
            }
            TraceEventKind::Fork {
                child,
                name,
                thread,
            } => self.fork(time_ns, tid, child, name, thread),
            TraceEventKind::Rename { name } => {
                if let Some(&thread) = self.by_tid.get(&tid) {
                    self.threads[thread as usize].name = name;
                }
            }
            TraceEventKind::Ended => {
                if let Some(&at) = self.track_of.get(&tid) {
                    self.close_call(at, time_ns);
                    self.tracks[at].dies(time_ns);
                }
            }
            TraceEventKind::Issue(request) => self.issue(time_ns, tid, &request),
            TraceEventKind::Complete(request) => self.blocks.complete(time_ns, &request),
            TraceEventKind::UringSubmit { request, operation } => {
                if let Some(&at) = self.track_of.get(&tid) {
                    let tracks = &mut self.tracks;
                    self.asynchronous
                        .submit(tracks, at, time_ns, request, operation);
                }
            }
            TraceEventKind::UringComplete { request, result } => {
                self.asynchronous
                    .done(&mut self.tracks, time_ns, request, result);
            }
            TraceEventKind::Enter { number, arguments } => {
                let (at, pid) = self.acting(time_ns, cpu, tid);
                self.enter(at, pid, time_ns, number, arguments);
            }
            TraceEventKind::Exit { number, result } => {
                let (at, pid) = self.acting(time_ns, cpu, tid);
                self.exit(at, pid, time_ns, number, result);
            }
            TraceEventKind::Opened { fd, path } => {
                let (at, pid) = self.acting(time_ns, cpu, tid);
                self.tables.opened(&mut self.tracks[at], pid, fd, &path);
            }
            TraceEventKind::Replied { begun_ns, status } => {
                let (at, _) = self.acting(time_ns, cpu, tid);
                self.tracks[at].replied = Some((begun_ns.max(self.start_ns), status));
            }
        }
    }

    fn begin(&mut self, time_ns: u64) {
        self.start_ns = time_ns;
        self.end_ns = time_ns;
        for track in &mut self.tracks {
            track.begin(time_ns);
        }
    }

    fn track(&mut self, tid: i32) -> Option<&mut ThreadTrack> {
        let at = *self.track_of.get(&tid)?;
        Some(&mut self.tracks[at])
    }

    /// Index of the thread, or [`NONE`] if it is not ours.
    fn thread_of(&self, tid: i32) -> u32 {
        let at = self.track_of.get(&tid);
        at.map_or(NONE, |&at| self.tracks[at].thread)
    }

    fn pid_of(&self, tid: i32) -> i32 {
        let thread = self.by_tid.get(&tid);
        thread.map_or(tid, |&thread| self.threads[thread as usize].pid)
    }

    fn switch(&mut self, time_ns: u64, cpu: u16, left: (i32, SwitchedOutState), next: i32) {
        let (previous, state) = left;
        if let Some(&at) = self.track_of.get(&previous) {
            let track = &mut self.tracks[at];
            track.runs(time_ns, cpu, &mut self.cores);
            track.leaves(time_ns, state);
        }
        self.cores.switch(time_ns, cpu, previous, next);
        if let Some(track) = self.track(next) {
            track.arrives(time_ns, cpu);
        }
    }

    fn fork(&mut self, time_ns: u64, tid: i32, child: i32, name: String, is_thread: bool) {
        let parent = self.pid_of(tid);
        let pid = if is_thread { parent } else { child };
        if !is_thread {
            self.tables.descriptors.fork(parent, child);
        }
        let thread = self.add_thread(pid, child, name, ThreadClass::Other);
        let mut track = ThreadTrack::new(thread, child, ThreadPhase::Runnable, time_ns);
        track.born = true;
        self.add_track(track);
    }

    /// The track and the process of a thread in an event that only a recorded thread causes itself: it is one, and it
    /// runs.
    fn acting(&mut self, time_ns: u64, cpu: u16, tid: i32) -> (usize, i32) {
        let known = self.track_of.get(&tid).copied();
        let at = known.unwrap_or_else(|| {
            let thread = self.by_tid.get(&tid).copied();
            let thread = thread.unwrap_or_else(|| {
                self.add_thread(tid, tid, "unknown".to_owned(), ThreadClass::Other)
            });
            self.appear(thread, tid)
        });
        let track = &mut self.tracks[at];
        let told_at_start = track.phase == ThreadPhase::Unseen && time_ns == self.start_ns;
        if !told_at_start {
            track.runs(time_ns, cpu, &mut self.cores);
        }
        (at, self.pid_of(tid))
    }

    fn enter(&mut self, at: usize, pid: i32, time_ns: u64, number: u32, arguments: [u64; 4]) {
        self.close_call(at, time_ns);
        let track = &mut self.tracks[at];
        track.acts();
        self.tables.enter(track, pid, time_ns, number, arguments);
        if track.phase == ThreadPhase::Unseen {
            track.was_in_call();
        }
        if let Some((CallKind::Sync, file)) = track.kind_and_file() {
            self.syncing.push((track.tid, file));
        }
    }

    fn exit(&mut self, at: usize, pid: i32, time_ns: u64, number: u32, result: i64) {
        let underway = self.tracks[at].underway;
        if underway.is_some_and(|call| call.number != number) {
            self.close_call(at, time_ns);
        }
        let track = &mut self.tracks[at];
        self.tables.exit(track, pid, time_ns, number, result);
        track.acts();
        self.stop_syncing(at);
    }

    /// Ends a call whose exit is never reported.
    fn close_call(&mut self, at: usize, time_ns: u64) {
        let track = &mut self.tracks[at];
        if let Some(call) = track.underway.take() {
            if let Some(row) = track.calls.get_mut(call.index as usize) {
                row.end_ns = time_ns;
            }
            self.stop_syncing(at);
        }
    }

    fn stop_syncing(&mut self, at: usize) {
        let tid = self.tracks[at].tid;
        self.syncing.retain(|&(other, _)| other != tid);
    }

    fn issue(&mut self, time_ns: u64, tid: i32, request: &BlockRequest) {
        let thread = self.thread_of(tid);
        let Some(index) = self.blocks.issue(time_ns, request, thread) else {
            return;
        };
        let mut syncing = [NONE; 4];
        for (slot, &(_, file)) in syncing.iter_mut().zip(&self.syncing) {
            *slot = file;
        }
        let at = self.track_of.get(&tid).copied();
        let call = at.and_then(|at| self.tracks[at].kind_and_file());
        let foreign = at.is_none() && request.by_process;
        self.hints.push(RequestHint {
            call,
            syncing,
            foreign,
            journal: request.by_journal,
        });
        if let Some(at) = at
            && let Some(call) = self.tracks[at].underway
            && call.shape.submits
        {
            let block = &self.blocks.rows[index];
            self.asynchronous.issued(&mut self.tracks, at, index, block);
        }
    }

    /// Ends the burst: its rows, by thread and time. The next burst begins with the threads that still live.
    pub(crate) fn finish_burst(&mut self) -> BurstRows {
        self.stop_all();
        let files = &self.tables.files;
        let mut blocks = self.blocks.take();
        request_files::name_request_files(&mut blocks, self.blocks.ranges(), &self.hints, files);
        self.asynchronous.place(&mut self.tracks, &blocks, files);
        let ours = files.devices_with_roles();
        let matters = |block: &Block| block.completed_ns > 0 && ours.contains(&block.device);
        let asked = blocks.iter().zip(&self.hints);
        let asked = asked.filter(|(block, _)| matters(block));
        self.totals.count_blocks(asked);
        blocks.retain(matters);
        self.tracks.sort_by_key(|track| track.thread);
        let span_ns = self.end_ns - self.start_ns;
        self.totals.count_tracks(&self.tracks, span_ns);
        let (states, calls) = self.number_rows();
        self.clear();
        self.judge(&calls);
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
        let tracks = &mut self.tracks;
        let mut states = Vec::with_capacity(tracks.iter().map(|track| track.states.len()).sum());
        let mut calls = Vec::with_capacity(tracks.iter().map(|track| track.calls.len()).sum());
        for track in tracks {
            let first = calls.len() as u32;
            states.extend(track.states.drain(..).map(|mut state| {
                if state.call != NONE {
                    state.call += first;
                }
                state
            }));
            calls.append(&mut track.calls);
        }
        (states, calls)
    }

    fn clear(&mut self) {
        self.cores.forget();
        self.hints.clear();
        self.syncing.clear();
        self.tracks.retain(|track| track.phase != ThreadPhase::Gone);
        self.track_of.clear();
        for (at, track) in self.tracks.iter_mut().enumerate() {
            track.alive = false;
            self.track_of.insert(track.tid, at);
        }
    }

    /// Classifies threads that no rule knows by the calls of a burst, which are in order of threads: a thread that
    /// receives and sends serves a client; any other works in the background.
    fn judge(&mut self, calls: &[Call]) {
        for (thread, index) in self.threads.iter_mut().zip(0..) {
            if thread.class == ThreadClass::Other {
                thread.class = ThreadClass::Background;
                self.presumed.insert(index);
            }
        }
        for calls in calls.chunk_by(|one, other| one.thread == other.thread) {
            let does = |kind| calls.iter().any(|call| call.kind == kind && !call.failed);
            let thread = calls[0].thread;
            let talks = does(CallKind::Receive) && does(CallKind::Send);
            if talks && self.presumed.remove(&thread) {
                self.threads[thread as usize].class = ThreadClass::Session;
            }
        }
    }
}
