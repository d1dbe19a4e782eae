//! A capture: three instances of the tracer, switched on for one burst at a time.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::bpf::Attachment;
use super::decode::Decoder;
use super::foreign::CpuUse;
use super::instance::{Counts, Instance};
use super::open_watch::OpenWatch;
use super::opens::Listener;
use super::processes::{self, LiveThread};
use super::raw_burst::RawBurst;
use super::reader::Reader;
use super::tracepoints::{DEVICES, Meaning, SCHEDULING, SYSTEM_CALLS};
use super::{CaptureError, Options};

/// A target that can be traced. Everything it took from the kernel is given back when it is dropped.
pub struct Capture {
    // First, so that its reader lets go of the instances before they are removed.
    burst: Option<Running>,
    options: Options,
    decoder: Arc<Decoder>,
    calls: Instance,
    scheduling: Instance,
    devices: Instance,
    clients: Vec<i32>,
    /// None where the kernel takes no programs.
    watch: Option<Arc<Mutex<OpenWatch>>>,
    /// Lets go of the programs of the last burst.
    releasing: Option<JoinHandle<()>>,
    counts_before: Counts,
}

/// A burst that is being taken.
struct Running {
    burst: RawBurst,
    reader: Reader,
    /// Processor time before it.
    cpu: CpuUse,
    /// Programs that hear of opens, as long as this is kept.
    watching: Vec<Attachment>,
}

impl Capture {
    /// Prepares to trace; nothing is switched on yet.
    pub fn attach(options: Options) -> Result<Self, CaptureError> {
        let mut decoder = Decoder::default();
        let create = |kind: &str| {
            let name = format!("{}-{kind}", options.instance);
            Instance::create(&options.tracefs, &name, options.buffer_bytes)
        };
        let mut calls = create("calls")?;
        add_calls(&mut calls, &mut decoder)?;
        calls.follow_forks()?;
        let mut scheduling = create("sched")?;
        for (event, meaning) in SCHEDULING {
            if !scheduling.add(event, meaning, &mut decoder) {
                return Err(lacks(event));
            }
        }
        scheduling.follow_forks()?;
        let mut devices = create("block")?;
        for (event, meaning) in DEVICES {
            // A kernel without io_uring, or with its older names, has fewer.
            devices.add(event, meaning, &mut decoder);
        }
        let watch = OpenWatch::load(&options.tracefs);
        let watch = watch.ok().map(|watch| Arc::new(Mutex::new(watch)));
        let capture = Self {
            options,
            decoder: Arc::new(decoder),
            calls,
            scheduling,
            devices,
            clients: Vec::new(),
            watch,
            releasing: None,
            counts_before: Counts::default(),
            burst: None,
        };
        capture.follow_threads()?;
        Ok(capture)
    }

    /// How records become events.
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
        let pids = processes::with_descendants(&self.options.pids);
        let mut threads: Vec<_> = pids.into_iter().flat_map(processes::threads).collect();
        threads.extend(
            self.clients
                .iter()
                .filter_map(|&tid| processes::thread(tid)),
        );
        threads
    }

    fn targets(&self) -> Result<Vec<i32>, CaptureError> {
        let pids = processes::with_descendants(&self.options.pids);
        if pids.is_empty() {
            return Err(CaptureError::new(
                "the process to record does not run",
                "start the database first, or give the pid of one that runs",
            ));
        }
        Ok(pids)
    }

    /// Switches on; what happens from now on belongs to the burst.
    pub fn begin(&mut self) -> Result<(), CaptureError> {
        if let Some(releasing) = self.releasing.take() {
            // It returns nothing, and a panic in it would have been told already.
            let _ = releasing.join();
        }
        let begun = self.switch_on();
        if begun.is_err() {
            self.switch_off()?;
        }
        self.burst = Some(begun?);
        Ok(())
    }

    /// Switches off, and takes what was recorded since [`Self::begin`]; none if it was not called.
    pub fn end(&mut self) -> Result<Option<RawBurst>, CaptureError> {
        let Some(running) = self.burst.take() else {
            return Ok(None);
        };
        let mut burst = running.burst;
        burst.end_ns = monotonic_ns();
        burst.foreign_cpu_share = running.cpu.foreign_share_since();
        self.switch_off()?;
        // The kernel takes some 50 ms to let go of each program, in which it does nothing else for us.
        self.releasing = Some(thread::spawn(move || drop(running.watching)));
        let heard = running.reader.finish();
        let (streams, opens) = heard.map_err(|error| unreadable(&error))?;
        burst.streams = streams;
        burst.hear(opens);
        let counts = Counts::of(&self.instances());
        burst.events = counts.read - self.counts_before.read;
        burst.lost_events = counts.lost - self.counts_before.lost;
        self.counts_before = counts;
        self.see_new_threads(&mut burst);
        Ok(Some(burst))
    }

    fn switch_off(&self) -> Result<(), CaptureError> {
        (self.instances().iter()).try_for_each(|instance| instance.record(false))?;
        (self.instances().iter()).try_for_each(|instance| instance.disable())
    }

    /// Points the instances at the threads that live now; returns their processes.
    fn follow_threads(&self) -> Result<Vec<i32>, CaptureError> {
        let pids = self.targets()?;
        let tids = thread_ids(&pids);
        self.calls.follow(&tids)?;
        self.scheduling
            .follow(&[&tids[..], &self.clients].concat())?;
        Ok(pids)
    }

    fn switch_on(&self) -> Result<Running, CaptureError> {
        self.follow_threads()?;
        (self.instances().iter()).try_for_each(|instance| instance.enable())?;
        // Again, for threads that were started before their parents were followed.
        let pids = self.follow_threads()?;
        let (listener, watching) = self.watch_opens(&pids);
        let mut burst = self.surroundings(&pids);
        let mut pipes = Vec::new();
        for instance in self.instances() {
            pipes.extend(instance.pipes()?);
        }
        let reader = Reader::start(pipes, listener, self.options.poll);
        let reader = reader.map_err(|error| unreadable(&error))?;
        let cpu = CpuUse::now(&self.own_threads(&burst.threads, reader.tid));
        (self.instances().iter()).try_for_each(|instance| instance.record(true))?;
        burst.start_ns = monotonic_ns();
        Ok(Running {
            burst,
            reader,
            cpu,
            watching,
        })
    }

    /// Hears of opens from now on, so that none falls between what was open before and the first event.
    fn watch_opens(&self, pids: &[i32]) -> (Option<Listener>, Vec<Attachment>) {
        let Some(watch) = &self.watch else {
            return (None, Vec::new());
        };
        let locked = watch.lock().unwrap_or_else(PoisonError::into_inner);
        match locked.attach() {
            Ok(watching) => (Some(Listener::new(Arc::clone(watch), pids)), watching),
            Err(_) => (None, Vec::new()),
        }
    }

    /// Threads, open files and calls under way as a burst begins.
    fn surroundings(&self, pids: &[i32]) -> RawBurst {
        let threads = self.threads();
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

    fn instances(&self) -> [&Instance; 3] {
        [&self.calls, &self.scheduling, &self.devices]
    }

    /// Threads whose processor time is not foreign.
    fn own_threads(&self, threads: &[LiveThread], reader: i32) -> Vec<i32> {
        let ignored = processes::with_descendants(&self.options.ignore_pids);
        let mut tids = thread_ids(&ignored);
        tids.extend(threads.iter().map(|thread| thread.tid));
        tids.push(reader);
        tids.sort_unstable();
        tids.dedup();
        tids
    }

    /// Threads that were started during the burst and are still alive: their names are known only now.
    fn see_new_threads(&self, burst: &mut RawBurst) {
        let known: HashSet<i32> = burst.threads.iter().map(|thread| thread.tid).collect();
        let new = |thread: &LiveThread| !known.contains(&thread.tid);
        burst.new_threads = self.threads().into_iter().filter(new).collect();
    }
}

/// System calls by tracepoints of their own; they cost less than one for all with a filter.
fn add_calls(instance: &mut Instance, decoder: &mut Decoder) -> Result<(), CaptureError> {
    let mut known = 0;
    for call in SYSTEM_CALLS {
        let entry = format!("syscalls/sys_enter_{call}");
        let exit = format!("syscalls/sys_exit_{call}");
        known += usize::from(instance.add(&entry, Meaning::Enter, decoder));
        instance.add(&exit, Meaning::Exit, decoder);
    }
    if known == 0 {
        return Err(lacks("syscalls"));
    }
    Ok(())
}

fn lacks(event: &str) -> CaptureError {
    CaptureError::new(
        format!("this kernel has no tracepoint {event}"),
        "record on a kernel of 5.10 or later with event tracing (CONFIG_FTRACE_SYSCALLS)",
    )
}

fn unreadable(error: &io::Error) -> CaptureError {
    CaptureError::new(
        format!("cannot read the events: {error}"),
        "see that no core is switched off while recording",
    )
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
