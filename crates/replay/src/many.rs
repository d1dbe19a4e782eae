//! One scenario, or many on several threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use tierwise_work::Work;

use crate::program::Program;
use crate::run::run;
use crate::{Outcome, ReplayError, Scenario};

/// Answers one scenario.
///
/// # Errors
/// Work that cannot be run; a scenario that cannot be.
pub fn replay(work: &Work, scenario: &Scenario) -> Result<Outcome, ReplayError> {
    run(&Program::new(work)?, scenario)
}

/// Answers scenarios on `threads` threads, each for itself, in their order; those that had not begun when `stop`
/// was set are missing at the end.
pub fn replay_all(
    program: &Program<'_>,
    scenarios: &[Scenario],
    threads: usize,
    stop: &AtomicBool,
) -> Vec<Result<Outcome, ReplayError>> {
    let next = AtomicUsize::new(0);
    let answers = Mutex::new(vec![None; scenarios.len()]);
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(scenario) = scenarios.get(index) else {
                return;
            };
            let answer = run(program, scenario);
            let mut answers = answers
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            answers[index] = Some(answer);
        }
    };
    thread::scope(|scope| (0..threads.max(1)).for_each(|_| drop(scope.spawn(work))));
    let answers = answers
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    answers.into_iter().flatten().collect()
}
