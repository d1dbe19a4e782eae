//! Background load: how much processor time other programs took from the recorded sessions.
//!
//! A recording says how long other programs ran, not whether they would have yielded: a build at low priority does,
//! another server does not. So their share is scaled until the sessions are runnable as long as observed. It never
//! exceeds the observed share.

use tierwise_work::Mechanism;

use crate::api::scenario::{Mode, Scenario};
use crate::kernel::run::run;
use crate::program::prepared::Program;

/// Observed share below which nothing is calibrated.
const MIN_SHARE: f64 = 0.02;
/// Steps of the bisection: to 1.6 % of the observed share.
const STEPS: u32 = 6;
/// Virtual time of each step, in nanoseconds.
const SPAN_NS: u64 = 1_000_000_000;

/// Share of the recorded cores that background load uses in replays.
pub(crate) fn calibrated_share(program: &Program) -> f64 {
    *program.background_share.get_or_init(|| calibrate(program))
}

fn calibrate(program: &Program) -> f64 {
    let observed = program.work.foreign_cpu_share.clamp(0.0, 1.0);
    let shares = &program.work.observed.shares;
    let waited = shares
        .iter()
        .find(|share| share.0 == "runnable")
        .map(|share| share.1);
    let calibrates = !program.is_off(Mechanism::BackgroundCalibration) && observed >= MIN_SHARE;
    let Some(waited) = waited.filter(|_| calibrates) else {
        return observed;
    };
    let waits_longer = |share: f64| runnable(program, share).is_some_and(|found| found > waited);
    if !waits_longer(observed) {
        return observed;
    }
    let (mut low, mut high) = (0.0, observed);
    for _ in 0..STEPS {
        let middle = (low + high) / 2.0;
        if waits_longer(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    (low + high) / 2.0
}

/// Share of their time that sessions are runnable while background load uses `share`.
fn runnable(program: &Program, share: f64) -> Option<f64> {
    let mode = Mode::Steady { span_ns: SPAN_NS };
    let scenario = Scenario {
        background_share: Some(share),
        ..Scenario::as_recorded(program, mode, 0)
    };
    let outcome = run(program, &scenario).ok()?;
    outcome
        .shares
        .iter()
        .find(|share| share.0 == "runnable")
        .map(|share| share.1)
}
