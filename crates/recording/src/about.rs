//! `about.json`: date, machine and subject of a recording, and how far it can be trusted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Role;

/// A recording's description of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// Always "tierwise recording".
    pub format: String,
    /// [`crate::FORMAT_VERSION`].
    pub version: u32,
    /// When it began, RFC 3339, UTC.
    pub started_at: String,
    /// Version of tierwise.
    pub tierwise: String,
    /// Name of the engine or of the rules file.
    pub engine: String,
    /// The engine's own version, if known.
    pub engine_version: Option<String>,
    /// Settings that matter to prediction, by the engine's own names: buffer size, page size.
    pub settings: BTreeMap<String, String>,
    /// The machine it ran on.
    pub machine: Machine,
    /// From the first to the last instant that belongs to the recording.
    pub duration_s: f64,
    /// When events were taken.
    pub bursts: Vec<Burst>,
    /// Devices that hold the files.
    pub devices: Vec<Device>,
    /// Events that the kernel dropped.
    pub losses: Losses,
    /// What recording cost.
    pub cost: Option<Cost>,
    /// Units of work done in the whole of `duration_s`, counted without tracing (transactions), if known.
    pub transactions: Option<u64>,
    /// Increase of the engine's own counters in `duration_s`, by name; empty if they were not read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, u64>,
    /// Size of all files in the engine's data directory, if that directory is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_directory_bytes: Option<u64>,
    /// The same by role of the files, with those in other directories that hold files of the database; empty in older
    /// recordings.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub role_bytes: BTreeMap<Role, u64>,
    /// Number of PostgreSQL's replication slots, which keep its log; none of other engines, and in older recordings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replication_slots: Option<u32>,
    /// Tables and indexes, by the files that hold them; empty if the server was not asked, and in older recordings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relations: Vec<Relation>,
    /// Programs at the other end of the sessions' sockets; empty if there are none, and in older recordings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<ClientProgram>,
    /// Processor time used by others than the recorded threads during bursts, as a share of all cores.
    pub foreign_cpu_share: f64,
    /// Programs that used most of that time, the busiest first; empty in older recordings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign_programs: Vec<ForeignProgram>,
    /// Processor time that the hypervisor took during bursts while threads wanted it, as a share of all cores; 0 in
    /// older recordings.
    #[serde(default)]
    pub stolen_cpu_share: f64,
    /// The recording's checks of itself.
    pub checks: Vec<Check>,
    /// Sentences that every use of the recording repeats.
    pub warnings: Vec<String>,
}

impl About {
    /// Cores that the server and its recorded clients use: fewer than the machine has if the server is limited and all
    /// clients are on other hosts. Of a fraction, a whole core.
    #[must_use]
    pub fn server_cores(&self) -> u32 {
        let cores = self.machine.cores.max(1);
        let mut clients = self.clients.iter();
        let alone =
            !self.clients.is_empty() && clients.all(|client| client.kind == ClientKind::Remote);
        match self.machine.core_limit.filter(|_| alone) {
            Some(limit) => (limit.ceil() as u32).clamp(1, cores),
            None => cores,
        }
    }
}

/// A table, an index, or another relation with files of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Relation {
    /// End of the path of its first file, as `base/5/16397`.
    pub path: String,
    /// Its name, with its schema.
    pub name: String,
    /// The database that holds it; empty for the connected one.
    #[serde(default)]
    pub database: String,
    /// `table`, `index`, `toast` or `materialized view`.
    pub kind: String,
    /// The table that it belongs to, if it is no table itself.
    #[serde(default)]
    pub table: Option<String>,
    /// The partitioned table that its table is a part of.
    #[serde(default)]
    pub partitioned: Option<String>,
    /// Bytes of all its files.
    #[serde(default)]
    pub size_bytes: u64,
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Cores that are online.
    pub cores: u32,
    /// Cores that the server may use, by its affinity and the quotas of its control groups, where that is fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_limit: Option<f64>,
    /// Limits of block I/O of the server's control groups, for devices of its files: "60 writes a second".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub io_limits: Vec<String>,
    /// Memory, or the limit of the recorded processes' control group if that is less.
    pub memory_bytes: u64,
    /// Memory of the recorded processes themselves, page cache aside: 0 in recordings that do not say.
    #[serde(default)]
    pub processes_bytes: u64,
    /// The processor's name.
    pub processor: String,
    /// The kernel's release.
    pub kernel: String,
}

/// A stretch of time in which every event was taken.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Burst {
    /// From.
    pub start_ns: u64,
    /// To.
    pub end_ns: u64,
    /// Processor time of storage itself; none in recordings from before it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_cpu: Option<StorageCpu>,
}

/// Processor time in a burst of threads that work for the devices, not for a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageCpu {
    /// Of the servers of emulated disks.
    pub server_ns: u64,
    /// Of the kernel's own threads: block devices, file systems, write-back, software interrupts put off.
    pub kernel_ns: u64,
}

/// A mounted block device; `roles` is empty if it held no recorded file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// Name in `/sys/block`, or of the partition.
    pub name: String,
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// Where it is mounted.
    pub mount: Option<String>,
    /// Roles of the files on it.
    pub roles: Vec<Role>,
    /// Recorded partitions with the same number share one physical device.
    pub shared: u32,
    /// First sector of this partition on that device.
    pub first_sector: u64,
    /// Size in sectors.
    pub sectors: u64,
    /// The profile, as TOML, if the device is an emulated one.
    pub profile: Option<String>,
    /// Latency of the path to an emulated device that its server compensates, in microseconds; none in older
    /// recordings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_us: Option<f64>,
    /// By how much longer that path is with more requests outstanding: their number, ascending, and microseconds;
    /// empty in older recordings, and for a device of which it was not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path_added_us: Vec<(u32, f64)>,
    /// Whether the device has a volatile cache, so that a flush means work.
    pub write_cache: bool,
    /// The file system and all layers below it, each before the layer below; empty in older recordings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<ChainLink>,
}

/// One part of the chain from a file system down to the physical devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChainLink {
    /// 0 for the file system; one more than that of the part above it.
    pub depth: u32,
    /// Kind of part: "ext4", "LVM volume", "partition", "disk".
    pub kind: String,
    /// As the kernel names it; none for a file system.
    pub name: Option<String>,
    /// The owner's or maker's name for it: a volume, a backing file, a model.
    pub label: Option<String>,
    /// Size in sectors; none for a file system.
    pub sectors: Option<u64>,
    /// Whether the kernel believes that it rotates; only of a physical device.
    pub rotational: Option<bool>,
}

/// A program that holds sessions of the recorded server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientProgram {
    /// Its name, as the kernel shows it; empty for peers on other hosts.
    pub program: String,
    /// What it is.
    pub kind: ClientKind,
    /// Processes of that name, or addresses of other hosts.
    pub processes: u32,
    /// Sessions that it held at once.
    pub sessions: u32,
    /// Connections that it served itself at that time: the clients of a pooler.
    #[serde(default)]
    pub served: u32,
}

/// What a client program is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum ClientKind {
    /// It passes on the requests of its own clients: pgbouncer, ProxySQL, HAProxy.
    Pooler,
    /// A benchmark's client: pgbench, sysbench.
    LoadGenerator,
    /// A server's own tool: psql, mysqldump.
    Tool,
    /// Another server of the engine, or a receiver of its log.
    Replica,
    /// On another host: what it is cannot be seen.
    Remote,
    /// Anything else.
    #[default]
    Application,
}

/// A program that used processors beside the recorded ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ForeignProgram {
    /// Its name, as the kernel shows it.
    pub program: String,
    /// Its processes, the busiest first; at most a few.
    pub pids: Vec<i32>,
    /// Processor time during bursts, as a share of all cores.
    pub cpu_share: f64,
}

/// Events that the kernel dropped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Losses {
    /// Events taken.
    pub recorded_events: u64,
    /// Events dropped for want of space.
    pub lost_events: u64,
}

/// Cost of recording, from alternating stretches with and without.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Rate of work (context switches or transactions) during bursts over that between them.
    pub rate_ratio: f64,
    /// Its 95 % interval.
    pub rate_ratio_low: f64,
    /// Its 95 % interval.
    pub rate_ratio_high: f64,
    /// Processor time of the server for one context switch during bursts over that between them; 1 if not known.
    #[serde(default = "one")]
    pub cpu_ratio: f64,
    /// Its 95 % interval; 0 if not known, and in older recordings.
    #[serde(default)]
    pub cpu_ratio_low: f64,
    /// Its 95 % interval.
    #[serde(default)]
    pub cpu_ratio_high: f64,
}

fn one() -> f64 {
    1.0
}

/// One check of a recording on itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Name of the check, for example "parts sum to wall time".
    pub name: String,
    /// Whether it held.
    pub passed: bool,
    /// The figure and its bound.
    pub detail: String,
}
