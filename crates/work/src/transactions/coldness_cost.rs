//! The engine's cost of cold cores, learned from its recording.

use std::collections::BTreeMap;

use tierwise_recording::Host;

use crate::constants::{COLDNESS_LEAST_SPREAD, COLDNESS_MOST_NS, WARMUP_COLD_FACTOR};
use crate::timeline::segments::SegmentKind;
use crate::transactions::turns::RawTurn;
use crate::{Disabled, Mechanism, WarmupCost};

/// Least number of turns to learn the cost: of one shape, and in all.
const ENOUGH: (usize, usize) = (20, 500);

/// Cost of a wholly cold core to this engine: the slope of the turns' processor time over their exposure to
/// coldness, by least squares within turns of one shape.
pub(crate) fn coldness_cost(
    sessions: &[Vec<RawTurn>],
    host: Option<&Host>,
    disabled: Disabled,
) -> WarmupCost {
    let usual = usual(host);
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
    if count < ENOUGH.1 || (below / count as f64).sqrt() < COLDNESS_LEAST_SPREAD.get() {
        return usual;
    }
    WarmupCost {
        cold_ns: (above / below).clamp(0.0, COLDNESS_MOST_NS.get()),
        ..usual
    }
}

/// Usual cost of coldness on a host, by the longest pause of its measurement.
fn usual(host: Option<&Host>) -> WarmupCost {
    let pauses = host.and_then(|host| host.cache_warmup.as_ref());
    let longest = pauses.and_then(|found| found.pauses.last());
    let usual = WarmupCost::default();
    WarmupCost {
        cold_ns: longest.map_or(usual.cold_ns, |pause| {
            let cold_ns = pause.idle_core_ns * WARMUP_COLD_FACTOR.get();
            cold_ns.clamp(0.0, COLDNESS_MOST_NS.get())
        }),
        ..usual
    }
}

/// Drops the turns that took longest: they included other work.
fn without_outliers(mut pairs: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    pairs.sort_by(|a, b| a.1.total_cmp(&b.1));
    pairs.truncate(pairs.len() - pairs.len() / 20);
    pairs
}

/// A turn's cost of coldness, relative to the cost of a wholly cold core.
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
