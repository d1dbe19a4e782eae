//! Mechanisms of the model by name. Each can be switched off, to measure what it is worth (benchmarks/ablation.py).
//!
//! A mechanism that recorded data drives is switched off by taking that data out of the work ([`Disabled::strip`]); the
//! others ask [`Disabled::has`] where they act.

use crate::scheduler::preemption::PreemptionRules;
use crate::storage::rules::JournalRules;
use crate::{Grouping, Pace, RecordedRequest, Reuse, Session, Step, Work, WorkError};

macro_rules! mechanisms {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A mechanism that can be switched off.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Mechanism { $($(#[$doc])* $variant,)* }

        impl Mechanism {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its name in tables and options.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

mechanisms! {
    /// Runnable time is restored where no event told of a switch.
    MissingSwitches = "missing_switches",
    /// Caches that go cold while a core idles.
    CacheWarmup = "cache_warmup",
    /// Time that an idle core takes to start a thread.
    WakeupLatency = "wakeup_latency",
    /// Threads return to their last core in the recorded share of wakeups.
    CoreAffinity = "core_affinity",
    /// A woken thread preempts the running one in the recorded share of wakeups.
    Preemption = "preemption",
    /// Processor time of other programs.
    BackgroundLoad = "background_load",
    /// That load is reduced until sessions are runnable as long as recorded.
    BackgroundCalibration = "background_calibration",
    /// A client thread serves its sessions one at a time.
    ClientThreads = "client_threads",
    /// A client thread runs on after a request.
    ClientRunOn = "client_run_on",
    /// A client is awake before its session's thread has left the core.
    ClientHeadStart = "client_head_start",
    /// Sessions wait for other threads of the engine.
    ThreadDependencies = "thread_dependencies",
    /// Sessions wait for reads of the engine's I/O workers.
    IoWorkers = "io_workers",
    /// Locks that sessions wait for.
    HotLocks = "hot_locks",
    /// Commits share flushes of the log.
    FlushSharing = "flush_sharing",
    /// Processor time of a flush's leader.
    LeaderCpu = "leader_cpu",
    /// Checkpoints of a library's write-ahead log.
    WalCheckpoints = "wal_checkpoints",
    /// Sessions of the engine's background threads.
    BackgroundSessions = "background_sessions",
    /// Processor time of the file system's journal threads.
    JournalThreads = "journal_threads",
    /// Processor time of the kernel's I/O threads and an emulated disk's server.
    IoCpuCost = "io_cpu_cost",
    /// The path to an emulated disk.
    EmulatedPath = "emulated_path",
    /// What the emulation subtracts for that path.
    PathCredit = "path_credit",
    /// The server of an emulated disk spins before it answers.
    Spin = "spin",
    /// The server of an emulated disk stores one write at a time.
    SerialStore = "serial_store",
    /// Write-back waits for flushes of an emulated disk.
    SerialFlush = "serial_flush",
    /// Times of a real device by queue depth and by file.
    EmpiricalClasses = "empirical_classes",
    /// Roles move with their whole partitions.
    Partitions = "partitions",
    /// Read-ahead by the new device's window.
    ReadAheadWindows = "read_ahead_windows",
    /// Reads of a cache that holds all files go with time.
    WarmReads = "warm_reads",
    /// Writers wait where too much is dirty.
    DirtyLimit = "dirty_limit",
    /// The kernel's throttle of write-back.
    WritebackThrottle = "writeback_throttle",
}

/// Mechanisms that are switched off; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disabled(u64);

/// What does nothing, in place of a step.
const NOTHING: Step = Step::Reuse(Reuse::UNKNOWN);

impl Disabled {
    /// Mechanisms by their names.
    ///
    /// # Errors
    /// An unknown name.
    pub fn named(names: &[String]) -> Result<Self, WorkError> {
        let mut disabled = Self::default();
        for name in names {
            let mut all = Mechanism::ALL.iter();
            let found = all.find(|mechanism| mechanism.name() == name);
            let found = found.ok_or_else(|| {
                WorkError::new(
                    format!("no mechanism is called {name}"),
                    "name one of those in docs/replay.md",
                )
            })?;
            disabled.0 |= 1 << *found as u64;
        }
        Ok(disabled)
    }

    /// Whether a mechanism is switched off.
    #[must_use]
    pub fn has(self, mechanism: Mechanism) -> bool {
        self.0 & (1 << mechanism as u64) != 0
    }

    /// Takes out of work what drives these mechanisms.
    pub(crate) fn strip(self, work: &mut Work) {
        for mechanism in Mechanism::ALL.iter().filter(|one| self.has(**one)) {
            strip(work, *mechanism);
        }
    }
}

fn strip(work: &mut Work, mechanism: Mechanism) {
    match mechanism {
        Mechanism::WakeupLatency => work.wakeups.start_at_once(),
        Mechanism::CoreAffinity => {
            work.wakeups.move_freely();
            work.client_cores.clear();
            work.sessions.iter_mut().for_each(|one| one.cores.clear());
        }
        Mechanism::Preemption => work.preemption = PreemptionRules::default(),
        Mechanism::BackgroundLoad => work.foreign_cpu_share = 0.0,
        Mechanism::ClientThreads => work.sessions.iter_mut().for_each(|one| one.client = None),
        Mechanism::BackgroundSessions => work.sessions.retain(|one| one.pace == Pace::Loop),
        Mechanism::FlushSharing => work
            .log
            .iter_mut()
            .filter(|log| log.grouping != Grouping::Exclusive)
            .for_each(|log| log.grouping = Grouping::Alone),
        Mechanism::LeaderCpu => work
            .log
            .iter_mut()
            .for_each(|log| (log.leader_cpu_ns, log.release_cpu_ns) = (0, 0)),
        Mechanism::WalCheckpoints => {
            work.checkpoints = None;
            replace(work, |step| {
                matches!(step, Step::Checkpoint | Step::Frames { .. })
            });
        }
        Mechanism::HotLocks => replace(work, |step| matches!(step, Step::Lock { .. })),
        Mechanism::ClientRunOn => replace(work, |step| matches!(step, Step::ClientRunOn { .. })),
        Mechanism::ClientHeadStart => steps(work).for_each(|step| {
            if let Step::Cpu { head_start_ns, .. } = step {
                *head_start_ns = 0;
            }
        }),
        Mechanism::JournalThreads => work.journal = JournalRules::default(),
        Mechanism::IoCpuCost => work.storage = None,
        Mechanism::EmpiricalClasses => requests(work).for_each(|one| {
            (one.depth, one.log) = (0, false);
        }),
        _ => {}
    }
}

fn steps(work: &mut Work) -> impl Iterator<Item = &mut Step> {
    let sessions = work.sessions.iter_mut();
    sessions.flat_map(|session: &mut Session| &mut session.steps)
}

fn replace(work: &mut Work, is_such: fn(&Step) -> bool) {
    let such = steps(work).filter(|step| is_such(step));
    such.for_each(|step| *step = NOTHING);
}

fn requests(work: &mut Work) -> impl Iterator<Item = &mut RecordedRequest> {
    work.devices.iter_mut().flat_map(|device| {
        let either = device.reads.iter_mut().chain(&mut device.writes);
        either.chain(&mut device.flushes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_others_refused() {
        let names = Mechanism::ALL.iter().map(|one| one.name().to_owned());
        let names: Vec<String> = names.collect();
        let all = Disabled::named(&names).expect("their own names");
        assert!(Mechanism::ALL.iter().all(|one| all.has(*one)));
        assert!(Disabled::named(&["warp".to_owned()]).is_err());
        assert!(!Disabled::default().has(Mechanism::Preemption));
    }

    #[test]
    fn what_drives_a_mechanism_is_taken_out() {
        let mut work = Work {
            foreign_cpu_share: 0.3,
            storage: Some(crate::StorageCost::default()),
            ..Work::default()
        };
        let names = ["background_load", "io_cpu_cost"].map(str::to_owned);
        Disabled::named(&names).expect("names").strip(&mut work);
        assert_eq!((work.foreign_cpu_share, work.storage), (0.0, None));
    }
}
