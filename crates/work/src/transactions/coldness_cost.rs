//! What cold cores cost the engine, learned from its recording.

use std::collections::BTreeMap;

use crate::timeline::segments::SegmentKind;
use crate::transactions::turns::RawTurn;
use crate::{Disabled, Mechanism, WarmupCost};

/// Turns that tell what coldness costs: of one shape at least so many, and in all.
const ENOUGH: (usize, usize) = (20, 500);
/// The spread of exposures below which nothing can be told, as their standard deviation.
const LEAST_SPREAD: f64 = 0.02;
/// The most that a cold core was ever seen to cost.
const MOST_COLD_NS: f64 = 2_000_000.0;

/// What a wholly cold core costs this engine: the slope of the processor time of turns over how much they were exposed
/// to it, by least squares within turns of one shape.
pub(crate) fn coldness_cost(sessions: &[Vec<RawTurn>], disabled: Disabled) -> WarmupCost {
    let usual = WarmupCost::default();
    if disabled.has(Mechanism::CacheWarmup) {
        return WarmupCost {
            cold_ns: 0.0,
            ..usual
        };
    }
    let mut shapes: BTreeMap<(u64, u64), Vec<(f64, f64)>> = BTreeMap::new();
    for turn in sessions.iter().flatten().filter(|turn| turn.complete) {
        let pairs = shapes.entry(turn.shape).or_default();
        pairs.push((exposure(&usual, turn), turn.cpu_ns() as f64));
    }
    let (mut above, mut below, mut count) = (0.0, 0.0, 0);
    for pairs in shapes.into_values().filter(|pairs| pairs.len() >= ENOUGH.0) {
        let pairs = without_outliers(pairs);
        let number = pairs.len() as f64;
        let sum = pairs
            .iter()
            .fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let mean = (sum.0 / number, sum.1 / number);
        for (exposed, took_ns) in &pairs {
            above += (exposed - mean.0) * (took_ns - mean.1);
            below += (exposed - mean.0).powi(2);
        }
        count += pairs.len();
    }
    if count < ENOUGH.1 || (below / count as f64).sqrt() < LEAST_SPREAD {
        return usual;
    }
    WarmupCost {
        cold_ns: (above / below).clamp(0.0, MOST_COLD_NS),
        ..usual
    }
}

/// Without the turns that took longest: they did something else too.
fn without_outliers(mut pairs: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    pairs.sort_by(|a, b| a.1.total_cmp(&b.1));
    pairs.truncate(pairs.len() - pairs.len() / 20);
    pairs
}

/// What a turn paid for coldness, in what a wholly cold core costs.
fn exposure(cost: &WarmupCost, turn: &RawTurn) -> f64 {
    let segments = turn.segments.iter();
    let exposed = segments.filter_map(|segment| {
        let SegmentKind::Cpu { cold, .. } = segment.kind else {
            return None;
        };
        let cold = f64::from(cold);
        let (_, left) = cost.warm(segment.time_ns() as f64, cold);
        Some(cold - left)
    });
    exposed.sum()
}
