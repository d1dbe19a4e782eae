//! The three instances that a tracer needs, as one.
//!
//! Calls of the recorded threads; scheduling of these and of their clients; requests of the whole machine, since
//! they complete under any thread.

use super::decode::Decoder;
use super::instance::{Counts, Instance, Pipe, online_cpus};
use super::tracepoints::{DEVICES, Meaning, RESULTS, SCHEDULING, SYSTEM_CALLS};
use super::{Options, TracerError};

/// Fraction of the others' buffer size for the events of devices.
const DEVICES_SHARE: u64 = 4;

/// Three private instances.
pub struct Tracers {
    calls: Instance,
    scheduling: Instance,
    devices: Instance,
}

impl Tracers {
    /// Makes them, switched off; `decoder` learns their records.
    pub fn create(options: &Options, decoder: &mut Decoder) -> Result<Self, TracerError> {
        let most = memory_bytes() / 16 / (3 * online_cpus().len() as u64);
        let room = options.buffer_bytes.min(most);
        let create = |kind: &str, bytes: u64| {
            let name = format!("{}-{kind}", options.instance);
            Instance::create(&options.tracefs, &name, bytes)
        };
        let mut calls = create("calls", room)?;
        add_calls(&mut calls, decoder)?;
        calls.follow_forks()?;
        let mut scheduling = create("sched", room)?;
        for (event, meaning) in SCHEDULING {
            if !scheduling.add(event, meaning, decoder) {
                return Err(lacks(event));
            }
        }
        scheduling.follow_forks()?;
        // Requests are far fewer than calls and switches; allocated memory costs time, used or not.
        let mut devices = create("block", room / DEVICES_SHARE)?;
        for (event, meaning) in DEVICES {
            // A kernel without io_uring, or with its older names, has fewer.
            devices.add(event, meaning, decoder);
        }
        Ok(Self {
            calls,
            scheduling,
            devices,
        })
    }

    fn all(&self) -> [&Instance; 3] {
        [&self.calls, &self.scheduling, &self.devices]
    }

    /// Traces these threads; of clients, the scheduling alone.
    pub fn follow(&self, tids: &[i32], clients: &[i32]) -> Result<(), TracerError> {
        self.calls.follow(tids)?;
        self.scheduling.follow(&[tids, clients].concat())
    }

    /// Switches the tracepoints on; nothing is recorded before [`Self::record`].
    pub fn enable(&self) -> Result<(), TracerError> {
        (self.all().iter()).try_for_each(|instance| instance.enable())
    }

    /// Starts recording into the buffers.
    pub fn record(&self) -> Result<(), TracerError> {
        (self.all().iter()).try_for_each(|instance| instance.record(true))
    }

    /// Switches everything off.
    pub fn switch_off(&self) -> Result<(), TracerError> {
        (self.all().iter()).try_for_each(|instance| instance.record(false))?;
        (self.all().iter()).try_for_each(|instance| instance.disable())
    }

    /// The records, by instance and core.
    pub fn pipes(&self) -> Result<Vec<Pipe>, TracerError> {
        let mut pipes = Vec::new();
        for instance in self.all() {
            pipes.extend(instance.pipes()?);
        }
        Ok(pipes)
    }

    /// Counts since they were made.
    pub fn counts(&self) -> Counts {
        Counts::of(&self.all())
    }
}

/// System calls by tracepoints of their own; they cost less than one for all with a filter.
fn add_calls(instance: &mut Instance, decoder: &mut Decoder) -> Result<(), TracerError> {
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
    for (call, filter) in RESULTS {
        let exit = format!("syscalls/sys_exit_{call}");
        if instance.add(&exit, Meaning::Exit, decoder) {
            instance.filter(&exit, filter)?;
        }
    }
    Ok(())
}

pub(super) fn lacks(event: &str) -> TracerError {
    TracerError::new(
        format!("this kernel has no tracepoint {event}"),
        "record on a kernel of 5.10 or later with event tracing (CONFIG_FTRACE_SYSCALLS)",
    )
}

fn memory_bytes() -> u64 {
    // SAFETY: takes no pointers.
    let (pages, page) = unsafe {
        (
            libc::sysconf(libc::_SC_PHYS_PAGES),
            libc::sysconf(libc::_SC_PAGESIZE),
        )
    };
    pages.max(0).cast_unsigned() * page.max(0).cast_unsigned()
}
