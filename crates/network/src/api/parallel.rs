//! Replays one scenario, or many on several threads.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use serde::Serialize;
use tierwise_device::{Profile, ProfileLibrary};
use tierwise_recording::UserError;
use tierwise_work::Work;

use crate::api::scenario::{Outcome, Scenario};
use crate::api::simulation_request::SimulationRequest;
use crate::kernel::simulation_run::run_scenario;
use crate::program::Program;

/// Replays one scenario.
///
/// # Errors
///
/// Work that cannot be replayed, or an invalid scenario.
pub fn replay(work: &Work, scenario: &Scenario) -> Result<Outcome, UserError> {
    run_scenario(
        &Program::new(work.clone(), &ProfileLibrary::default())?,
        scenario,
    )
}

/// The answer to a request, or the reason for its refusal.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SimulationAnswer {
    /// The outcome.
    Outcome(Box<Outcome>),
    /// The request was refused.
    Refused {
        /// What is wrong.
        message: String,
        /// How to correct it.
        fix: String,
    },
}

impl SimulationAnswer {
    /// Answers requests on `threads` threads, in their order. A refused request does not affect the others.
    /// Requests not yet started when `stop` was set are missing at the end.
    #[must_use]
    pub fn all(
        program: &Program,
        requests: &[SimulationRequest],
        profiles: &[Profile],
        threads: usize,
        stop: &AtomicBool,
    ) -> Vec<Self> {
        let answer = |request: &SimulationRequest| {
            let answer = request
                .scenario(program, profiles)
                .and_then(|scenario| run_scenario(program, &scenario));
            answer.map_or_else(Self::refused, |outcome| Self::Outcome(Box::new(outcome)))
        };
        map_on_threads(requests, threads, stop, answer)
    }

    fn refused(error: UserError) -> Self {
        Self::Refused {
            message: error.message,
            fix: error.fix,
        }
    }
}

/// Replays scenarios on `threads` threads; results come in their order. Scenarios not yet started when `stop` was set
/// are missing at the end.
pub fn replay_all(
    program: &Program,
    scenarios: &[Scenario],
    threads: usize,
    stop: &AtomicBool,
) -> Vec<Result<Outcome, UserError>> {
    map_on_threads(scenarios, threads, stop, |scenario| {
        run_scenario(program, scenario)
    })
}

/// Applies `each` to `all` on threads. Results come in order, without items not yet started at the stop.
pub(crate) fn map_on_threads<A: Sync, B: Send>(
    all: &[A],
    threads: usize,
    stop: &AtomicBool,
    each: impl Fn(&A) -> B + Sync,
) -> Vec<B> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(all.len()));
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = all.get(index) else { return };
            let result = catch_unwind(AssertUnwindSafe(|| each(one)));
            let result = result.unwrap_or_else(|panic| {
                stop.store(true, Ordering::Relaxed); // nobody will see what the others find
                resume_unwind(panic)
            });
            lock(&done).push((index, result));
        }
    };
    thread::scope(|scope| (0..threads.max(1)).for_each(|_| drop(scope.spawn(work))));
    let mut done = done
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_unstable_by_key(|result| result.0);
    done.into_iter().map(|result| result.1).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
