//! What idleness costs: how much longer a thread runs after a wait, and how long an idle core takes to start it.

use std::collections::BTreeMap;

use tierwise_recording::{StateKind, ThreadClass};

use crate::cut::RawTurn;
use crate::view::View;
use crate::{CpuCost, Session, Step};

/// Scale of the logarithm: a wait of this length costs what the first caches hold.
const SCALE_NS: f64 = 20_000.0;
/// The factor goes no higher than this.
const MOST: f64 = 3.0;
/// Slope that is believed before anything is seen, and the weight of that belief in stretches on a core.
const PRIOR: (f64, f64) = (0.12, 500.0);
/// A steeper slope shows other programs' disturbance, not idleness: measured was 0.17.
const MOST_SLOPE: f64 = 0.25;
/// Stretches in the same place of turns of the same shape that make a cell.
const LEAST_CELL: usize = 30;
/// One stretch counts for no more than so many of its cell's mean.
const MOST_OF_MEAN: f64 = 4.0;

/// A stretch on a core: logarithm of the wait before it, and its length.
type Stretch = (f64, f64);

/// Fits the cost of idleness to stretches in the same place of turns of the same shape.
pub(crate) fn cpu_cost(sessions: &[Session], raw: &[Vec<RawTurn>]) -> Option<CpuCost> {
    let mut cells: BTreeMap<((u64, u64), u32, u32), Vec<Stretch>> = BTreeMap::new();
    for (session, raw) in sessions.iter().zip(raw) {
        for (turn, raw) in session
            .turns
            .iter()
            .zip(raw)
            .filter(|(_, raw)| raw.complete)
        {
            let from = turn.first_step as usize;
            let steps = &session.steps[from..from + turn.steps as usize];
            if steps.len() > 64 {
                continue;
            }
            for (place, step) in steps.iter().enumerate() {
                if let Step::Cpu {
                    time_ns,
                    after_wait_ns,
                    client: false,
                } = *step
                {
                    let wait = (1.0 + f64::from(after_wait_ns) / SCALE_NS).ln();
                    let cell = (raw.shape, turn.steps, place as u32);
                    cells
                        .entry(cell)
                        .or_default()
                        .push((wait, f64::from(time_ns)));
                }
            }
        }
    }
    let stretches: usize = cells.values().map(Vec::len).sum();
    (stretches >= LEAST_CELL).then(|| CpuCost {
        slope: slope(cells.values().filter(|cell| cell.len() >= LEAST_CELL)),
        scale_ns: SCALE_NS,
        most: MOST,
    })
}

/// One slope for all cells: each is a line through its own mean; a cell counts by the time it took.
fn slope<'a>(cells: impl Iterator<Item = &'a Vec<Stretch>>) -> f64 {
    let (mut above, mut below) = (0.0, 0.0);
    let (mut weight, mut weighted_mean) = (0.0, 0.0);
    let (mut time_ns, mut count) = (0.0, 0.0);
    let cells: Vec<_> = cells.collect();
    for cell in &cells {
        time_ns += cell.iter().map(|stretch| stretch.1).sum::<f64>();
        count += cell.len() as f64;
    }
    let unit_ns = (time_ns / f64::max(count, 1.0)).max(1.0);
    for cell in cells {
        let n = cell.len() as f64;
        let wait = cell.iter().map(|stretch| stretch.0).sum::<f64>() / n;
        let mean_ns = cell.iter().map(|stretch| stretch.1).sum::<f64>() / n;
        let share = mean_ns / unit_ns;
        for &(x, y) in cell {
            let y = (y / mean_ns.max(1.0)).min(MOST_OF_MEAN) - 1.0;
            above += share * (x - wait) * y;
            below += share * (x - wait) * (x - wait);
        }
        weight += share * n;
        weighted_mean += share * n * wait;
    }
    let (prior, belief) = PRIOR;
    let mean = if weight > 0.0 {
        weighted_mean / weight
    } else {
        0.0
    };
    let relative = (above + belief * prior / (1.0 + prior * mean)) / (below + belief);
    // relative = slope / (1 + slope × mean)
    let slope = relative / (1.0 - relative * mean).max(0.2);
    slope.clamp(0.0, MOST_SLOPE)
}

/// From a waking until a thread runs, where no recorded thread was on its core. Others may have been, unseen:
/// so a low quantile, which is about the mean where cores really were idle.
pub(crate) fn wake_ns(view: &View<'_>) -> u32 {
    let busy = busy_cores(view);
    let mut delays: Vec<u64> = Vec::new();
    for session in view.threads(ThreadClass::Session) {
        for three in view.states(session).windows(3) {
            let [before, ready, runs] = three else {
                continue;
            };
            let woken = before.kind == StateKind::Blocked && runs.kind == StateKind::Cpu;
            let delayed = woken && ready.kind == StateKind::Runnable;
            if delayed && !is_busy(busy.get(&runs.cpu), ready.start_ns) {
                delays.push(ready.end_ns - ready.start_ns);
            }
        }
    }
    delays.sort_unstable();
    let low = delays.get(delays.len() * 3 / 10).copied().unwrap_or(0);
    u32::try_from(low).unwrap_or(u32::MAX)
}

/// When recorded threads were on each core, in order.
fn busy_cores(view: &View<'_>) -> BTreeMap<u16, Vec<(u64, u64)>> {
    let mut busy: BTreeMap<u16, Vec<(u64, u64)>> = BTreeMap::new();
    for state in view
        .recording
        .states
        .iter()
        .filter(|state| state.kind == StateKind::Cpu)
    {
        busy.entry(state.cpu)
            .or_default()
            .push((state.start_ns, state.end_ns));
    }
    busy.values_mut()
        .for_each(|stretches| stretches.sort_unstable());
    busy
}

fn is_busy(stretches: Option<&Vec<(u64, u64)>>, time_ns: u64) -> bool {
    stretches.is_some_and(|stretches| {
        let after = stretches.partition_point(|&(start_ns, _)| start_ns < time_ns);
        stretches[..after]
            .last()
            .is_some_and(|&(_, end_ns)| end_ns >= time_ns)
    })
}
