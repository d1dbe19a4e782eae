//! Counters of a disk, by partition and as a whole, since the last reset.

use serde::Serialize;
use tierwise_device::{Nanos, Op, Request, SECTOR_BYTES, WrittenSectors};
use tierwise_latency::{LatencyHistogram, LatencyPercentiles};

use crate::clock;
use crate::pacer::CountedRequest;
use crate::transport::TransportKind;

/// Counters of one partition.
#[derive(Clone, Debug, Serialize)]
pub struct PartitionStats {
    /// Its name.
    pub name: String,
    /// Requests that arrived.
    pub reads: u64,
    /// Requests that arrived.
    pub writes: u64,
    /// Requests that arrived.
    pub flushes: u64,
    /// Requests that arrived.
    pub discards: u64,
    /// Bytes asked for.
    pub read_bytes: u64,
    /// Bytes given.
    pub write_bytes: u64,
    /// Time with at least one request inside.
    pub busy_s: f64,
    /// Mean number of requests inside, over all time since the reset.
    pub queue_depth_mean: f64,
    /// Most requests inside at once.
    pub queue_depth_max: u64,
    /// From arrival to answer, and the path.
    pub read_latency: Option<LatencyPercentiles>,
    /// From arrival to answer, and the path.
    pub write_latency: Option<LatencyPercentiles>,
    /// From arrival to answer, and the path.
    pub flush_latency: Option<LatencyPercentiles>,
}

/// Counters of the whole device.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceStats {
    /// How requests come.
    pub transport: TransportKind,
    /// Time since the reset.
    pub elapsed_s: f64,
    /// Processor time of the server since the reset.
    pub cpu_s: f64,
    /// Latency of the path that is compensated for.
    pub path_us: f64,
    /// Mean number of requests inside.
    pub queue_depth_mean: f64,
    /// Most requests inside at once.
    pub queue_depth_max: u64,
    /// How long after its time each paced request was answered.
    pub deadline_overrun: Option<LatencyPercentiles>,
    /// Requests that failed.
    pub errors: u64,
    /// Bytes of completed writes that a power cut would put at risk, at present.
    pub unflushed_bytes: u64,
    /// Sectors written to the medium for each written by the host, since the disk came up, if the model
    /// reports it.
    pub write_amplification: Option<f64>,
    /// The partitions, in order of their sectors.
    pub partitions: Vec<PartitionStats>,
}

/// Time-weighted number of requests inside.
#[derive(Default)]
struct QueueDepthMeter {
    inside: u64,
    most: u64,
    since: Nanos,
    busy: Nanos,
    request_time: u128,
}

impl QueueDepthMeter {
    fn settle(&mut self, now: Nanos) {
        let passed = now.saturating_sub(self.since);
        self.request_time += u128::from(passed) * u128::from(self.inside);
        self.busy += if self.inside > 0 { passed } else { 0 };
        self.since = self.since.max(now);
    }

    fn enter(&mut self, now: Nanos) {
        self.settle(now);
        self.inside += 1;
        self.most = self.most.max(self.inside);
    }

    fn leave(&mut self, now: Nanos) {
        self.settle(now);
        self.inside -= 1;
    }

    /// Starts again at `now` with the requests that are inside.
    fn restarted(&self, now: Nanos) -> Self {
        Self {
            inside: self.inside,
            most: self.inside,
            since: now,
            ..Self::default()
        }
    }

    fn mean(&self, elapsed: Nanos) -> f64 {
        self.request_time as f64 / (elapsed.max(1)) as f64
    }
}

struct PartitionCounters {
    name: String,
    count: [u64; 4],
    bytes: [u64; 4],
    depth: QueueDepthMeter,
    latency: [LatencyHistogram; 3],
}

impl PartitionCounters {
    fn new(name: String, depth: QueueDepthMeter) -> Self {
        let latency = [
            LatencyHistogram::new(),
            LatencyHistogram::new(),
            LatencyHistogram::new(),
        ];
        Self {
            name,
            count: [0; 4],
            bytes: [0; 4],
            depth,
            latency,
        }
    }

    fn report(&mut self, now: Nanos, elapsed: Nanos) -> PartitionStats {
        self.depth.settle(now);
        PartitionStats {
            name: self.name.clone(),
            reads: self.count[Op::Read as usize],
            writes: self.count[Op::Write as usize],
            flushes: self.count[Op::Flush as usize],
            discards: self.count[Op::Discard as usize],
            read_bytes: self.bytes[Op::Read as usize],
            write_bytes: self.bytes[Op::Write as usize],
            busy_s: self.depth.busy as f64 / 1e9,
            queue_depth_mean: self.depth.mean(elapsed),
            queue_depth_max: self.depth.most,
            read_latency: self.latency[Op::Read as usize].summary(),
            write_latency: self.latency[Op::Write as usize].summary(),
            flush_latency: self.latency[Op::Flush as usize].summary(),
        }
    }
}

/// All counters of a device.
pub(crate) struct DeviceCounters {
    transport: TransportKind,
    since: Nanos,
    cpu_s: f64,
    pub path: Nanos,
    depth: QueueDepthMeter,
    deadline_overrun: LatencyHistogram,
    errors: u64,
    partitions: Vec<PartitionCounters>,
}

impl DeviceCounters {
    pub fn new(
        transport: TransportKind,
        names: impl IntoIterator<Item = String>,
        path: Nanos,
    ) -> Self {
        let now = clock::monotonic_now();
        let depth = || QueueDepthMeter {
            since: now,
            ..QueueDepthMeter::default()
        };
        Self {
            transport,
            since: now,
            cpu_s: clock::process_cpu_s(),
            path,
            depth: depth(),
            deadline_overrun: LatencyHistogram::new(),
            errors: 0,
            partitions: names
                .into_iter()
                .map(|name| PartitionCounters::new(name, depth()))
                .collect(),
        }
    }

    /// Starts from zero; requests that are inside stay inside.
    pub fn reset(&mut self) {
        let now = clock::monotonic_now();
        self.since = now;
        self.cpu_s = clock::process_cpu_s();
        self.depth = self.depth.restarted(now);
        self.deadline_overrun = LatencyHistogram::new();
        self.errors = 0;
        for partition in &mut self.partitions {
            let depth = partition.depth.restarted(now);
            *partition = PartitionCounters::new(std::mem::take(&mut partition.name), depth);
        }
    }

    pub fn arrived(&mut self, now: Nanos, partition: usize, request: &Request) {
        let counters = &mut self.partitions[partition];
        counters.count[request.op as usize] += 1;
        counters.bytes[request.op as usize] += u64::from(request.sectors) * SECTOR_BYTES;
        counters.depth.enter(now);
        self.depth.enter(now);
    }

    pub fn answered(&mut self, now: Nanos, served: CountedRequest, succeeded: bool) {
        let counters = &mut self.partitions[served.partition];
        counters.depth.leave(now);
        self.depth.leave(now);
        if !succeeded {
            self.errors += 1;
            return;
        }
        if let Some(times) = counters.latency.get_mut(served.request.op as usize) {
            times.record(now.saturating_sub(served.arrived) + self.path);
        }
        if let Some(due) = served.due {
            self.deadline_overrun.record(now.saturating_sub(due));
        }
    }

    /// The counters, and two figures that are counted elsewhere.
    pub fn report(&mut self, unflushed_bytes: u64, written: WrittenSectors) -> DeviceStats {
        let now = clock::monotonic_now();
        let elapsed = now - self.since;
        self.depth.settle(now);
        DeviceStats {
            transport: self.transport,
            elapsed_s: elapsed as f64 / 1e9,
            cpu_s: clock::process_cpu_s() - self.cpu_s,
            path_us: self.path as f64 / 1e3,
            queue_depth_mean: self.depth.mean(elapsed),
            queue_depth_max: self.depth.most,
            deadline_overrun: self.deadline_overrun.summary(),
            errors: self.errors,
            unflushed_bytes,
            write_amplification: written.amplification(),
            partitions: self
                .partitions
                .iter_mut()
                .map(|partition| partition.report(now, elapsed))
                .collect(),
        }
    }
}
