//! Mechanisms of the model by name. Each can be disabled to measure its effect (benchmarks/ablation.py).

use crate::{
    CommitGrouping, ReadReuse, ReuseDistanceClass, Session, Step, TurnPace, UserError, Work,
};

macro_rules! mechanisms {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A mechanism that can be disabled.
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
    /// A run costs more on a core that was idle.
    ColdCores = "cold_cores",
    /// Processor time of other programs.
    BackgroundLoad = "background_load",
    /// A client thread serves its sessions one at a time.
    ClientThreads = "client_threads",
    /// Sessions wait for other threads of the engine.
    ThreadDependencies = "thread_dependencies",
    /// Sessions wait for reads of the engine's I/O workers.
    IoWorkers = "io_workers",
    /// Locks that sessions wait for.
    HotLocks = "hot_locks",
    /// Commits share flushes of the log.
    FlushSharing = "flush_sharing",
    /// Commits share syncs of the engine's second log.
    SecondLog = "second_log",
    /// Processor time of a flush's leader.
    LeaderCpu = "leader_cpu",
    /// Sessions of the engine's background threads.
    BackgroundSessions = "background_sessions",
    /// The path to an emulated disk.
    EmulatedPath = "emulated_path",
    /// Times of a real device by queue depth and by file.
    EmpiricalClasses = "empirical_classes",
    /// Reads of a cache that holds all files go with time.
    WarmReads = "warm_reads",
    /// Writers wait where too much is dirty.
    DirtyLimit = "dirty_limit",
}

/// Disabled mechanisms; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DisabledMechanisms(u64);

impl DisabledMechanisms {
    /// Mechanisms by their names.
    ///
    /// # Errors
    /// An unknown name.
    pub fn named(names: &[String]) -> Result<Self, UserError> {
        let mut disabled = Self::default();
        for name in names {
            let mut all = Mechanism::ALL.iter();
            let found = all.find(|mechanism| mechanism.name() == name);
            let found = found.ok_or_else(|| {
                UserError::new(
                    format!("no mechanism is called {name}"),
                    "name one of those in docs/evidence/replay.md",
                )
            })?;
            disabled.0 |= 1 << *found as u64;
        }
        Ok(disabled)
    }

    /// Whether a mechanism is disabled.
    #[must_use]
    pub fn has(self, mechanism: Mechanism) -> bool {
        self.0 & (1 << mechanism as u64) != 0
    }
}

// Removes the recorded data that drives a mechanism. Mechanisms without such data check
// [`crate::DisabledMechanisms::has`] where they act.

const NOTHING: Step = Step::Reuse(ReadReuse {
    cache: ReuseDistanceClass::UNKNOWN,
    buffer: ReuseDistanceClass::UNKNOWN,
});

pub(crate) fn strip_mechanisms(work: &mut Work) {
    let disabled = work.disabled;
    let all = Mechanism::ALL.iter();
    all.filter(|mechanism| disabled.has(**mechanism))
        .for_each(|mechanism| take_out_steps(work, *mechanism));
}

fn take_out_steps(work: &mut Work, mechanism: Mechanism) {
    match mechanism {
        Mechanism::ColdCores => work.cold_factor = None,
        Mechanism::BackgroundLoad => work.foreign_cpu_share = 0.0,
        Mechanism::ClientThreads => work
            .sessions
            .iter_mut()
            .for_each(|session| session.client = None),
        Mechanism::BackgroundSessions => work
            .sessions
            .retain(|session| session.pace == TurnPace::Loop),
        Mechanism::FlushSharing => work
            .log
            .iter_mut()
            .filter(|log| log.grouping != CommitGrouping::Exclusive)
            .for_each(|log| log.grouping = CommitGrouping::Alone),
        Mechanism::SecondLog => work
            .scripts
            .iter_mut()
            .for_each(|script| script.shared = false),
        Mechanism::LeaderCpu => work
            .log
            .iter_mut()
            .for_each(|log| (log.leader_cpu_ns, log.release_cpu_ns) = (0, 0)),
        Mechanism::HotLocks => replace_steps(work, |step| matches!(step, Step::Lock { .. })),
        Mechanism::EmpiricalClasses => {
            for device in &mut work.devices {
                let either = device.reads.iter_mut().chain(&mut device.writes);
                let requests = either.chain(&mut device.flushes);
                requests.for_each(|request| (request.depth, request.log) = (0, false));
            }
        }
        _ => {}
    }
}

fn replace_steps(work: &mut Work, is_such: fn(&Step) -> bool) {
    let sessions = work.sessions.iter_mut();
    let steps = sessions.flat_map(|session: &mut Session| &mut session.steps);
    let such = steps.filter(|step| is_such(step));
    such.for_each(|step| *step = NOTHING);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DisabledMechanisms;

    #[test]
    fn names_are_found_and_others_refused() {
        let names = Mechanism::ALL
            .iter()
            .map(|mechanism| mechanism.name().to_owned());
        let names: Vec<String> = names.collect();
        let all = DisabledMechanisms::named(&names).expect("their own names");
        assert!(Mechanism::ALL.iter().all(|mechanism| all.has(*mechanism)));
        assert!(DisabledMechanisms::named(&["warp".to_owned()]).is_err());
        assert!(!DisabledMechanisms::default().has(Mechanism::HotLocks));
    }

    #[test]
    fn what_drives_a_mechanism_is_taken_out() {
        let names = ["background_load", "cold_cores"].map(str::to_owned);
        let mut work = Work {
            foreign_cpu_share: 0.3,
            cold_factor: Some(1.5),
            disabled: DisabledMechanisms::named(&names).expect("their names"),
            ..Work::default()
        };
        strip_mechanisms(&mut work);
        assert_eq!((work.foreign_cpu_share, work.cold_factor), (0.0, None));
    }
}
