//! Traces processes: three instances of the tracer, switched on for one burst at a time.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::bpf::Attachment;
use super::decode::Decoder;
use super::family::Family;
use super::foreign::CpuUse;
use super::instance::Counts;
use super::open_watch::OpenWatch;
use super::opens;
use super::raw_burst::RawBurst;
use super::reader::{Listeners, Reader};
use super::replies;
use super::reply_watch::ReplyWatch;
use super::tracers::Tracers;
use super::{Options, TracerError};
use crate::host::processes::{self, LiveThread};

/// A target that can be traced. Dropping it releases everything it took from the kernel.
pub struct BurstTracer {
    // First, so that its reader releases the instances before they are removed.
    burst: Option<Running>,
    options: Options,
    decoder: Arc<Decoder>,
    tracers: Tracers,
    clients: Vec<i32>,
    /// None where the kernel takes no programs.
    open_watch: Option<Arc<Mutex<OpenWatch>>>,
    /// The same.
    reply_watch: Option<Arc<Mutex<ReplyWatch>>>,
    /// Detaches the programs of the last burst.
    releasing: Option<JoinHandle<()>>,
    counts_before: Counts,
}

/// A burst that is being taken.
struct Running {
    burst: RawBurst,
    reader: Reader,
    /// Processor time before it.
    cpu: CpuUse,
    /// Programs that watch opens and replies, as long as this is kept.
    watching: Vec<Attachment>,
}

impl BurstTracer {
    /// Prepares to trace; nothing is switched on yet.
    pub fn attach(options: Options) -> Result<Self, TracerError> {
        let mut decoder = Decoder::default();
        let tracers = Tracers::create(&options, &mut decoder)?;
        let open_watch = OpenWatch::load(&options.tracefs);
        let reply_watch = ReplyWatch::load(&options.tracefs);
        let tracer = Self {
            open_watch: open_watch.ok().map(|watch| Arc::new(Mutex::new(watch))),
            reply_watch: reply_watch.ok().map(|watch| Arc::new(Mutex::new(watch))),
            options,
            decoder: Arc::new(decoder),
            tracers,
            clients: Vec::new(),
            releasing: None,
            counts_before: Counts::default(),
            burst: None,
        };
        tracer.targets(&Family::now())?;
        Ok(tracer)
    }

    /// Decodes records into events.
    pub fn decoder(&self) -> Arc<Decoder> {
        Arc::clone(&self.decoder)
    }

    /// Traces other processes from the next burst on.
    pub fn set_processes(&mut self, pids: Vec<i32>) {
        self.options.pids = pids;
    }

    /// Follows the scheduling of the target's clients too, from the next burst on.
    pub fn set_clients(&mut self, mut tids: Vec<i32>) {
        tids.sort_unstable();
        tids.dedup();
        self.clients = tids;
    }

    /// Threads of the target that are alive, and its clients.
    pub fn threads(&self) -> Vec<LiveThread> {
        self.threads_in(&Family::now())
    }

    fn threads_in(&self, family: &Family) -> Vec<LiveThread> {
        let pids = family.with_descendants(&self.options.pids);
        let mut threads: Vec<_> = pids.into_iter().flat_map(processes::threads).collect();
        threads.extend(
            self.clients
                .iter()
                .filter_map(|&tid| processes::thread(tid)),
        );
        threads
    }

    fn targets(&self, family: &Family) -> Result<Vec<i32>, TracerError> {
        let pids = family.with_descendants(&self.options.pids);
        if pids.is_empty() {
            return Err(TracerError::new(
                "the process to record does not run",
                "start the database first, or give the pid of one that runs",
            ));
        }
        Ok(pids)
    }

    /// Switches on; later events belong to the burst.
    pub fn begin(&mut self) -> Result<(), TracerError> {
        if let Some(releasing) = self.releasing.take() {
            // It returns nothing, and a panic in it would have been reported already.
            let _ = releasing.join();
        }
        let begun = self.switch_on();
        if begun.is_err() {
            self.tracers.switch_off()?;
        }
        self.burst = Some(begun?);
        Ok(())
    }

    /// Events since [`Self::begin`], taken or lost.
    pub fn events(&self) -> u64 {
        let counts = self.tracers.counts();
        let before = self.counts_before;
        counts.read + counts.lost - before.read - before.lost
    }

    /// Switches off, and takes the data recorded since [`Self::begin`]; none if it was not called.
    pub fn end(&mut self) -> Result<Option<RawBurst>, TracerError> {
        let Some(running) = self.burst.take() else {
            return Ok(None);
        };
        let mut burst = running.burst;
        burst.end_ns = monotonic_ns();
        burst.cpu = running.cpu.since();
        self.tracers.switch_off()?;
        // The kernel takes some 50 ms to detach each program, in which it does nothing else for us.
        self.releasing = Some(thread::spawn(move || drop(running.watching)));
        let heard = running.reader.finish();
        let heard = heard.map_err(|error| TracerError::unreadable(&error))?;
        burst.streams = heard.streams;
        burst.replies = heard.replies;
        burst.hear(heard.opens);
        let counts = self.tracers.counts();
        burst.events = counts.read - self.counts_before.read;
        burst.lost_events = counts.lost - self.counts_before.lost;
        self.counts_before = counts;
        self.see_new_threads(&mut burst);
        Ok(Some(burst))
    }

    /// Points the instances at the threads that live now; returns their processes.
    fn follow_threads(&self, family: &Family) -> Result<Vec<i32>, TracerError> {
        let pids = self.targets(family)?;
        let tids = thread_ids(&pids);
        self.tracers.follow(&tids, &self.clients)?;
        Ok(pids)
    }

    fn switch_on(&self) -> Result<Running, TracerError> {
        self.follow_threads(&Family::now())?;
        self.tracers.enable()?;
        // Again, for threads that were started before their parents were followed.
        let family = Family::now();
        let pids = self.follow_threads(&family)?;
        let (listeners, watching) = self.watch(&pids);
        let mut burst = self.surroundings(&family, &pids);
        let reader = Reader::start(self.tracers.pipes()?, listeners, &self.options);
        let reader = reader.map_err(|error| TracerError::unreadable(&error))?;
        let servers = self.disk_servers(&family);
        let cpu = CpuUse::now(reader.tid, &servers, family);
        self.tracers.record()?;
        burst.start_ns = monotonic_ns();
        Ok(Running {
            burst,
            reader,
            cpu,
            watching,
        })
    }

    /// Watches opens and replies from now on, so that no open is lost between the list of open files and the
    /// first event.
    fn watch(&self, pids: &[i32]) -> (Listeners, Vec<Attachment>) {
        let (mut listeners, mut watching) = (Listeners::default(), Vec::new());
        if let Some(watch) = &self.open_watch {
            let locked = watch.lock().unwrap_or_else(PoisonError::into_inner);
            if let Ok(attached) = locked.attach() {
                watching.extend(attached);
                listeners.opens = Some(opens::Listener::new(Arc::clone(watch), pids));
            }
        }
        if let Some(watch) = &self.reply_watch {
            let locked = watch.lock().unwrap_or_else(PoisonError::into_inner);
            if let Ok(attached) = locked.attach(pids) {
                watching.extend(attached);
                listeners.replies = Some(replies::Listener::new(Arc::clone(watch)));
            }
        }
        (listeners, watching)
    }

    /// Threads, open files and calls under way as a burst begins.
    fn surroundings(&self, family: &Family, pids: &[i32]) -> RawBurst {
        let threads = self.threads_in(family);
        let files = pids.iter().flat_map(|&pid| processes::open_files(pid));
        let under_way = |thread: &LiveThread| processes::call_under_way(thread.pid, thread.tid);
        RawBurst {
            files: files.collect(),
            calls: threads.iter().filter_map(under_way).collect(),
            clients: self.clients.clone(),
            threads,
            ..RawBurst::default()
        }
    }

    /// Threads that serve emulated disks.
    fn disk_servers(&self, family: &Family) -> Vec<i32> {
        thread_ids(&family.with_descendants(&self.options.disk_server_pids))
    }

    /// Threads that were started during the burst and are still alive: their names are known only now.
    fn see_new_threads(&self, burst: &mut RawBurst) {
        let known: HashSet<i32> = burst.threads.iter().map(|thread| thread.tid).collect();
        let new = |thread: &LiveThread| !known.contains(&thread.tid);
        burst.new_threads = self.threads().into_iter().filter(new).collect();
    }
}

fn thread_ids(pids: &[i32]) -> Vec<i32> {
    pids.iter()
        .flat_map(|&pid| processes::thread_ids(pid))
        .collect()
}

/// The clock of the events.
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a live structure.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}
