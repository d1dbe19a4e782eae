//! Turns events into rows: states of each thread, its calls, and requests to devices.
//!
//! Pure: the caller traces and passes in the events and its facts about threads and files. A switch that the
//! kernel does not report is inferred from the waking before it and the first event after it; a waking may
//! come before the switch that it answers; calls may be under way when a burst begins or ends.
//!
//! Not modelled: descriptors passed over sockets, files of an executed program that were to be closed, and
//! devices stacked on others (their requests are told of the lowest one).

mod asynchronous;
mod blocks;
mod burst;
mod calls;
mod checks;
mod classes;
mod cores;
mod extents;
mod files;
mod join;
mod syscalls;
#[cfg(test)]
mod tests;
mod track;

use std::collections::HashMap;

use tierwise_recording::{BurstRows, Check, File, Thread, ThreadClass};

use crate::{Event, EventKind, SwitchState};

pub use blocks::DeviceRange;
use blocks::Told;
pub(crate) use blocks::operation;
use burst::Burst;
use calls::Tables;
use checks::Totals;
use classes::Presumed;
use cores::Cores;
pub use extents::Extent;
pub(crate) use extents::Extents;
pub use files::FileFacts;

/// Makes rows of events, a burst at a time.
///
/// A burst: [`Timeline::see_thread`] and [`Timeline::see_open`] for what is known when it begins (a thread that
/// is not seen again since the last burst counts only if an event shows it); [`Timeline::push`] its events;
/// [`Timeline::describe_file`] for [`Timeline::paths_to_resolve`]; [`Timeline::finish_burst`].
#[derive(Debug)]
pub struct Timeline {
    threads: Vec<Thread>,
    /// The latest thread of each id.
    by_tid: HashMap<i32, u32>,
    tables: Tables,
    cores: Cores,
    burst: Burst,
    totals: Totals,
    presumed: Presumed,
}

impl Timeline {
    /// Begins with devices whose block requests are wanted.
    #[must_use]
    pub fn new(devices: Vec<DeviceRange>) -> Self {
        Self {
            threads: Vec::new(),
            by_tid: HashMap::new(),
            tables: Tables::default(),
            cores: Cores::default(),
            burst: Burst::new(devices),
            totals: Totals::default(),
            presumed: Presumed::default(),
        }
    }

    /// A thread lives when the next burst begins. Gives its index. One of class `Other` is judged by what it does.
    pub fn see_thread(&mut self, pid: i32, tid: i32, name: &str, class: ThreadClass) -> u32 {
        let known = self.by_tid.get(&tid).copied();
        let thread = match known.filter(|&thread| self.threads[thread as usize].pid == pid) {
            Some(thread) => {
                let row = &mut self.threads[thread as usize];
                name.clone_into(&mut row.name);
                if class != ThreadClass::Other {
                    row.class = class;
                }
                thread
            }
            None => self.add_thread(pid, tid, name, class),
        };
        self.burst.see(thread, tid);
        thread
    }

    fn add_thread(&mut self, pid: i32, tid: i32, name: &str, class: ThreadClass) -> u32 {
        let thread = self.threads.len() as u32;
        self.threads.push(Thread {
            pid,
            tid,
            name: name.to_owned(),
            class,
        });
        self.by_tid.insert(tid, thread);
        thread
    }

    /// A process has a file open; the path as the kernel shows it, `socket:[1]` for a socket.
    pub fn see_open(&mut self, pid: i32, fd: i32, path: &str) {
        let file = self.tables.files.intern(path);
        let unknown = tierwise_recording::UNKNOWN;
        self.tables.descriptors.set(pid, fd, file, unknown);
    }

    /// Forgets which files a process has open, before they are told anew.
    pub fn forget_opens(&mut self, pid: i32) {
        self.tables.descriptors.forget(pid);
    }

    /// Files that were first seen, written or resized since they were last described.
    #[must_use]
    pub fn paths_to_resolve(&self) -> Vec<(u32, String)> {
        self.tables.files.to_resolve()
    }

    /// Sets the role of a file and its place on a device.
    pub fn describe_file(&mut self, file: u32, facts: FileFacts) {
        self.tables.files.describe(file, facts);
    }

    /// Sets the class of a thread; `Other` leaves it to its calls.
    pub fn set_class(&mut self, thread: u32, class: ThreadClass) {
        if let Some(row) = self.threads.get_mut(thread as usize)
            && class != ThreadClass::Other
        {
            row.class = class;
        }
    }

    /// Threads that were seen so far.
    #[must_use]
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// Files that were seen so far.
    #[must_use]
    pub fn files(&self) -> &[File] {
        &self.tables.files.rows
    }

    /// Checks of how far the rows can be trusted.
    #[must_use]
    pub fn checks(&self) -> Vec<Check> {
        self.totals.checks(&self.cores)
    }

    /// Ends the burst: its rows.
    pub fn finish_burst(&mut self) -> BurstRows {
        let rows = self.burst.finish(&self.tables.files, &mut self.totals);
        self.cores.forget();
        self.presumed.judge(&mut self.threads, &rows.calls);
        rows
    }

    /// Takes the next event, in order of time.
    pub fn push(&mut self, event: &Event) {
        let time_ns = event.time_ns;
        match &event.kind {
            EventKind::BurstStart => self.burst.begin(time_ns),
            EventKind::BurstEnd => self.burst.end(time_ns),
            EventKind::Switch {
                previous,
                state,
                next,
            } => self.switch(event, *previous, *state, *next),
            EventKind::Waking {
                woken,
                target,
                interrupt,
            } => {
                let waker = if *interrupt { 0 } else { event.tid };
                let waker = self.burst.thread_of(waker);
                if let Some(track) = self.burst.track(*woken) {
                    track.woken(time_ns, *target, waker);
                }
            }
            EventKind::Fork {
                child,
                name,
                thread,
            } => self.fork(event, *child, name, *thread),
            EventKind::Rename { name } => {
                if let Some(&thread) = self.by_tid.get(&event.tid) {
                    name.clone_into(&mut self.threads[thread as usize].name);
                }
            }
            EventKind::Ended => self.burst.ended(event.tid, time_ns),
            EventKind::Issue { .. } | EventKind::Complete { .. } => self.block(event),
            EventKind::UringSubmit { request, operation } => {
                self.burst.submit(event.tid, time_ns, *request, *operation);
            }
            EventKind::UringComplete { request, result } => {
                self.burst.submitted_done(time_ns, *request, *result);
            }
            EventKind::Enter { .. }
            | EventKind::Exit { .. }
            | EventKind::Opened(_)
            | EventKind::Replied { .. } => self.act(event),
        }
    }

    fn switch(&mut self, event: &Event, previous: i32, state: SwitchState, next: i32) {
        let (time_ns, cpu) = (event.time_ns, event.cpu);
        if let Some(track) = self.burst.track(previous) {
            track.runs(time_ns, cpu, &mut self.cores);
            track.leaves(time_ns, state);
        }
        self.cores.switch(time_ns, cpu, previous, next);
        if let Some(track) = self.burst.track(next) {
            track.arrives(time_ns, cpu);
        }
    }

    fn fork(&mut self, event: &Event, child: i32, name: &str, is_thread: bool) {
        let parent = self.pid_of(event.tid);
        let pid = if is_thread { parent } else { child };
        if !is_thread {
            self.tables.descriptors.fork(parent, child);
        }
        let thread = self.add_thread(pid, child, name, ThreadClass::Other);
        self.burst.born(thread, child, event.time_ns);
    }

    fn pid_of(&self, tid: i32) -> i32 {
        let thread = self.by_tid.get(&tid);
        thread.map_or(tid, |&thread| self.threads[thread as usize].pid)
    }

    /// An event that only a recorded thread causes itself: it is one, and it runs.
    fn act(&mut self, event: &Event) {
        if self.burst.track(event.tid).is_none() {
            let known = self.by_tid.get(&event.tid).copied();
            let thread = known.unwrap_or_else(|| {
                self.add_thread(event.tid, event.tid, "unknown", ThreadClass::Other)
            });
            self.burst.appear(thread, event.tid);
        }
        let pid = self.pid_of(event.tid);
        self.burst
            .act(event, pid, &mut self.tables, &mut self.cores);
    }

    fn block(&mut self, event: &Event) {
        match event.kind {
            EventKind::Issue {
                device,
                sector,
                sectors,
                flags,
            } => {
                let told = told(event.time_ns, device, sector, sectors, flags);
                self.burst.issue(event.tid, told);
            }
            EventKind::Complete {
                device,
                sector,
                sectors,
                flags,
            } => {
                let told = told(event.time_ns, device, sector, sectors, flags);
                self.burst.complete(told);
            }
            _ => {}
        }
    }
}

fn told(time_ns: u64, device: u32, sector: u64, sectors: u32, flags: [u8; 8]) -> Told {
    Told {
        time_ns,
        device,
        sector,
        sectors,
        flags,
    }
}
