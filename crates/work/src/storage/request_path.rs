//! Latency of the path to an emulated disk and back.
//!
//! The path's latency differs from its processor time: part of that is off the path, and threads on it wait
//! to be started. A block request's recorded time includes the path. A request that the emulated disk answers
//! at once spent all of its time there: writes to an SSD that is faster than the path, flushes of a disk with
//! nothing to write. So the faster of writes and flushes give the path's latency.

use std::collections::BTreeMap;

use tierwise_recording::{Block, BlockOp};

use crate::constants::PATH_ALIKE_FACTOR;
use crate::index::view::View;
use crate::timeline::core_activity::CoreActivity;
use crate::statistics::median;
use crate::storage::request_cost::path_factor;

/// Least number of requests of a kind for an estimate.
const ENOUGH: usize = 20;
/// A time above this multiple of the median included a wait for something else.
const MOST_TIMES: u64 = 3;

/// Path time of a write or a flush shortly after another request, without competition for cores; none if
/// there are too few requests.
pub(crate) fn path_ns(view: &View<'_>) -> Option<f64> {
    let cores = CoreActivity::new(view.all_states());
    let mut kinds: [Vec<u64>; 2] = Default::default();
    for (block, apart_ns) in alone(view) {
        let of = view.recording.about.machine.cores;
        let free = cores.any_idles(of, block.issued_ns);
        if free && matches!(block.op, BlockOp::Write | BlockOp::Flush) {
            let took_ns = (block.completed_ns - block.issued_ns) as f64;
            let flushes = usize::from(block.op == BlockOp::Flush);
            kinds[flushes].push((took_ns / path_factor(apart_ns)) as u64);
        }
    }
    let kinds: Vec<(f64, usize)> = kinds
        .into_iter()
        .filter(|kind| kind.len() >= ENOUGH)
        .filter_map(|kind| Some((usual_ns(&kind)?, kind.len())))
        .collect();
    let quickest_ns = kinds.iter().map(|kind| kind.0).reduce(f64::min)?;
    let alike = kinds
        .iter()
        .filter(|kind| kind.0 <= PATH_ALIKE_FACTOR.get() * quickest_ns);
    let (sum_ns, count) = alike.fold((0.0, 0), |sum, &(ns, count)| {
        (sum.0 + ns * count as f64, sum.1 + count)
    });
    Some(sum_ns / count as f64)
}

/// The mean, without times that include a wait for something else.
fn usual_ns(took_ns: &[u64]) -> Option<f64> {
    let most_ns = MOST_TIMES * median(took_ns.to_vec())?;
    let usual = took_ns.iter().filter(|&&ns| ns <= most_ns);
    let (sum_ns, count) = usual.fold((0, 0), |sum, &ns| (sum.0 + ns, sum.1 + 1));
    Some(sum_ns as f64 / f64::from(count))
}

/// Requests to emulated disks without others under way there, with the time since the previous one was sent.
fn alone<'a>(view: &View<'a>) -> impl Iterator<Item = (&'a Block, u64)> {
    let devices = &view.recording.about.devices;
    // When the last request was sent, and when all had ended.
    let mut before: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    view.recording.blocks.iter().filter_map(move |block| {
        let device = devices.get(block.device as usize)?;
        device.profile.as_ref()?;
        let last = before.entry(device.shared).or_default();
        let (apart_ns, alone) = (block.issued_ns - last.0, block.issued_ns >= last.1);
        *last = (block.issued_ns, last.1.max(block.completed_ns));
        alone.then_some((block, apart_ns))
    })
}
