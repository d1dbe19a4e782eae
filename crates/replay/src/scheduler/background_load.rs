//! How much of the cores other programs took to the loss of the recorded sessions.
//!
//! The recording says how long others ran, not whether they would have given way: a build with a low priority
//! does, another server does not. So their share is scaled until the sessions wait for a core as long as they
//! were observed to; at most it is what others were observed to take.

use crate::api::scenario::{Mode, Scenario};
use crate::kernel::run::run;
use crate::program::prepared::Program;

/// A share of others below which there is nothing to work out.
const LEAST: f64 = 0.02;
/// Halvings of the interval: to 1.6 % of the observed share.
const STEPS: u32 = 6;
/// Virtual time of each try, in nanoseconds.
const SPAN_NS: u64 = 1_000_000_000;

/// The share of the recorded cores that others take in replays.
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
    let Some(waited) = waited.filter(|_| observed >= LEAST) else {
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

/// The share of their time that sessions wait for a core while others take a share.
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
