//! A real device that is known only by its recorded requests.
//!
//! Each request takes the time of a random recorded one of the same operation, of the log or of other files, issued at
//! a similar queue depth and of a similar size. Queue depth stands for queueing: the i-th request of a batch waits
//! behind those before it. Beyond the deepest recorded queue, times grow with depth as in the recording (least
//! squares). Not modelled: the place of a request on the device.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tierwise_device::random::SplitMix;
use tierwise_device::{Completion, Nanos, Op, Request, RequestId};
use tierwise_work::constants::UNOBSERVED_NS;
use tierwise_work::{RecordedDevice, RecordedRequest};

/// Recorded requests of one class of queue depths that are enough to draw from.
const ENOUGH: usize = 8;
/// Sizes, like queue depths, within this factor are similar. By definition.
const SIMILAR_SIZES: f64 = 2.0;

/// Recorded requests of one operation.
#[derive(Debug, Default)]
struct RecordedTimes {
    /// By class of queue depths; each class is sorted by size.
    classes: Vec<Vec<RecordedRequest>>,
    /// Time that each further request under way adds.
    per_depth_ns: f64,
}

/// The model.
#[derive(Debug)]
pub(crate) struct EmpiricalDevice {
    /// Reads, writes and flushes: of each, those for other files, then those for the log.
    requests: [[RecordedTimes; 2]; 3],
    under_way: u32,
    due: BinaryHeap<Reverse<(Nanos, RequestId)>>,
    random: SplitMix,
}

impl EmpiricalDevice {
    pub(crate) fn new(device: &RecordedDevice, seed: u64) -> Self {
        let either = |own: &[RecordedRequest], other: &[RecordedRequest]| {
            by_file_class(if own.is_empty() { other } else { own })
        };
        Self {
            requests: [
                either(&device.reads, &device.writes),
                either(&device.writes, &device.reads),
                by_file_class(&device.flushes),
            ],
            under_way: 0,
            due: BinaryHeap::with_capacity(1024),
            random: SplitMix::new(seed),
        }
    }

    /// Submits a request; `log`: for a file of the log.
    pub(crate) fn submit(&mut self, now: Nanos, id: RequestId, request: Request, log: bool) {
        let done_at = now + self.service_ns(&request, log);
        self.under_way += 1;
        self.due.push(Reverse((done_at, id)));
    }

    /// Time of the next completion.
    pub(crate) fn next_event(&self) -> Option<Nanos> {
        self.due.peek().map(|next| next.0.0)
    }

    /// Completes requests that are due.
    pub(crate) fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        while self.next_event().is_some_and(|at| at <= now) {
            if let Some(Reverse((at, id))) = self.due.pop() {
                self.under_way -= 1;
                completions.push(Completion { id, at });
            }
        }
    }

    fn service_ns(&mut self, request: &Request, log: bool) -> Nanos {
        let kind = match request.op {
            Op::Read => 0,
            Op::Write | Op::Discard => 1,
            Op::Flush => 2,
        };
        let class = depth_class(self.under_way);
        let [other, own] = [!log, log].map(|log| &self.requests[kind][usize::from(log)]);
        let known = if own.classes.is_empty() { other } else { own };
        let Some((found_class, recorded)) = nearest_depth_class(&known.classes, class) else {
            return if kind == 2 { 0 } else { UNOBSERVED_NS.get() };
        };
        let similar = similar_sized_requests(recorded, request.sectors);
        let drawn = similar[self.random.below(similar.len())];
        let longer = f64::from(request.sectors) / f64::from(drawn.sectors.max(1));
        let by_size = if longer > SIMILAR_SIZES { longer } else { 1.0 };
        let deeper = match class > found_class {
            true => f64::from(self.under_way.saturating_sub(drawn.depth)),
            false => 0.0,
        };
        (drawn.time_ns as f64 * by_size + known.per_depth_ns * deeper) as Nanos
    }
}

/// Class of a queue depth: depths of one class differ by less than a factor of two.
fn depth_class(depth: u32) -> usize {
    (depth + 1).ilog2() as usize
}

fn by_file_class(requests: &[RecordedRequest]) -> [RecordedTimes; 2] {
    [false, true].map(|log| {
        let ours = requests.iter().filter(|request| request.log == log);
        let mut classes: Vec<Vec<RecordedRequest>> = Vec::new();
        for request in ours.clone() {
            let class = depth_class(request.depth);
            classes.resize_with(classes.len().max(class + 1), Vec::new);
            classes[class].push(*request);
        }
        classes.iter_mut().for_each(|class| class.sort_unstable());
        RecordedTimes {
            classes,
            per_depth_ns: time_per_depth_ns(ours),
        }
    })
}

/// Slope of time over queue depth by least squares; at least 0.
fn time_per_depth_ns<'r>(requests: impl Iterator<Item = &'r RecordedRequest> + Clone) -> f64 {
    let pairs = requests.map(|request| (f64::from(request.depth), request.time_ns as f64));
    let count = pairs.clone().count().max(1) as f64;
    let sum = pairs
        .clone()
        .fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let mean = (sum.0 / count, sum.1 / count);
    let (above, below) = pairs.fold((0.0, 0.0), |sum, (depth, time)| {
        let off = depth - mean.0;
        (sum.0 + off * (time - mean.1), sum.1 + off * off)
    });
    if below > 0.0 {
        (above / below).max(0.0)
    } else {
        0.0
    }
}

/// Requests of the class nearest to the wanted one among those with enough requests, else among those with any.
fn nearest_depth_class(
    classes: &[Vec<RecordedRequest>],
    wanted: usize,
) -> Option<(usize, &[RecordedRequest])> {
    let nearest = |least: usize| {
        let known = (0..classes.len()).filter(|&class| classes[class].len() >= least);
        known.min_by_key(|class| class.abs_diff(wanted))
    };
    let class = nearest(ENOUGH).or_else(|| nearest(1))?;
    Some((class, &classes[class]))
}

/// Requests of a similar size, else of the nearest size.
fn similar_sized_requests(recorded: &[RecordedRequest], sectors: u32) -> &[RecordedRequest] {
    let at = |size: f64| recorded.partition_point(|request| f64::from(request.sectors) < size);
    let size = f64::from(sectors);
    let (from, to) = (at(size / SIMILAR_SIZES), at(size * SIMILAR_SIZES));
    if from < to {
        return &recorded[from..to];
    }
    let nearest = recorded.get(from).or(recorded.last());
    nearest.map_or(recorded, |nearest| {
        let to = recorded.partition_point(|request| request.sectors <= nearest.sectors);
        &recorded[at(f64::from(nearest.sectors))..to]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(depth: u32, time_us: u64, log: bool) -> RecordedRequest {
        RecordedRequest {
            sectors: 16,
            depth,
            time_ns: time_us * 1000,
            log,
        }
    }

    /// Log writes take 50 us each; data writes come in batches of 8, the i-th takes i times 100 us.
    fn device() -> EmpiricalDevice {
        let alone = (0..20).map(|_| recorded(0, 50, true));
        let batches = (0..80).map(|at| recorded(at % 8, u64::from(at % 8 + 1) * 100, false));
        let device = RecordedDevice {
            writes: alone.chain(batches).collect(),
            ..RecordedDevice::default()
        };
        EmpiricalDevice::new(&device, 0)
    }

    fn write() -> Request {
        Request {
            op: Op::Write,
            sector: 0,
            sectors: 16,
            fua: false,
        }
    }

    #[test]
    fn a_write_of_the_log_does_not_take_the_time_of_a_batch() {
        assert_eq!(device().service_ns(&write(), true), 50_000);
        assert_eq!(device().service_ns(&write(), false), 100_000);
    }

    #[test]
    fn requests_behind_others_take_as_long_as_recorded_ones() {
        let mut device = device();
        (0..6).for_each(|id| device.submit(0, id, write(), false));
        let last = device.service_ns(&write(), false);
        assert!((400_000..=800_000).contains(&last), "{last}");
    }

    #[test]
    fn a_deeper_queue_than_recorded_takes_proportionally_longer() {
        let mut device = device();
        (0..63).for_each(|id| device.submit(0, id, write(), false));
        let last = device.service_ns(&write(), false);
        assert!((6_300_000..=6_500_000).contains(&last), "{last}");
    }

    #[test]
    fn a_device_without_recorded_requests_completes_requests() {
        let mut device = EmpiricalDevice::new(&RecordedDevice::default(), 0);
        device.submit(0, 1, write(), false);
        let mut completions = Vec::new();
        device.advance(UNOBSERVED_NS.get(), &mut completions);
        assert_eq!(completions.len(), 1);
    }
}
