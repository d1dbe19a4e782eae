//! Mechanisms of the model by name. Each can be disabled to measure its effect (benchmarks/ablation.py).

use crate::UserError;

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
pub struct Disabled(u64);

impl Disabled {
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
        assert!(!Disabled::default().has(Mechanism::HotLocks));
    }
}
