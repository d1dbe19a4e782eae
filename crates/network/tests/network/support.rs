//! Work as a recording would give it, and shipped devices to put it on.

use std::fs;
use std::path::Path;

use tierwise_device::random::SplitMix;
use tierwise_device::{Profile, ProfileLibrary};
use tierwise_network::{ReplayMode, Scenario};
use tierwise_recording::{Role, ThreadClass};
use tierwise_work::{
    CommitGrouping, HotLock, LogRules, RecordedDevice, RecordedRequest, Session, Step,
    SyncRequests, Turn, TurnPace, Work,
};

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;

/// A shipped profile that refers to no other.
pub fn shipped(name: &str) -> Profile {
    let file = format!("../../python/tierwise/data/devices/{name}.toml");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = fs::read_to_string(path).expect("a shipped profile");
    Profile::parse_with(&text, name, &ProfileLibrary::default()).expect("a valid profile")
}

/// Memory whose requests take so long each.
pub fn memory(latency_us: f64) -> Profile {
    Profile::parse(&memory_text(latency_us), "memory.toml").expect("a valid profile")
}

/// Its profile as TOML.
pub fn memory_text(latency_us: f64) -> String {
    format!(
        "kind = \"ram\"\nsummary = \"by definition, for this test\"\ncapacity_mb = 1000000\nread_latency_us = {latency_us}\n\
         write_latency_us = {latency_us}\nflush_latency_us = 0\nlink_mb_per_s = 0\n[source]\n\
         capacity_mb = \"by definition, for this test\"\nread_latency_us = \"by definition, for this test\"\nwrite_latency_us = \"by definition, for this test\"\nflush_latency_us = \"by definition, for this test\"\n\
         link_mb_per_s = \"by definition, for this test\"\n"
    )
}

/// Turns of the same steps again and again, each a transaction.
pub fn session(name: &str, turns: u32, steps: &[Step]) -> Session {
    let length = steps.len() as u32;
    let turn = |index| Turn {
        first_step: index * length,
        steps: length,
        tail_steps: 0,
        ends: true,
        recorded_ns: 0,
    };
    Session {
        name: name.to_owned(),
        class: ThreadClass::Session,
        client: None,
        pace: TurnPace::Loop,
        turns: (0..turns).map(turn).collect(),
        starts: Vec::new(),
        steps: steps.repeat(turns as usize),
    }
}

/// Times of an exponential distribution with this mean.
pub fn exponential(mean_ns: f64, count: u32, seed: u64) -> Vec<u64> {
    let mut random = SplitMix::new(seed);
    let draw = |_| {
        let uniform = (random.draw() >> 11) as f64 / (1_u64 << 53) as f64;
        (-(1.0 - uniform).ln() * mean_ns).max(1.0) as u64
    };
    (0..count).map(draw).collect()
}

pub fn cpu(time_us: u32) -> Step {
    Step::Cpu {
        time_ns: time_us * 1000,
        client: false,
    }
}

/// How an engine's log works whose flush is one write.
pub fn log(grouping: CommitGrouping) -> LogRules {
    LogRules {
        grouping,
        scripts: vec![SyncRequests {
            writes: Vec::new(),
            flushes: 1,
            journal_writes: Vec::new(),
            by_caller: false,
            shared: false,
            range: (0, 0),
        }],
        page_bytes: 8192,
        first_sector: 0,
        sectors: 1 << 21,
        leader_cpu_ns: 10_000,
        release_cpu_ns: 2_000,
        write_cpu_ns: 4_000,
        wake_ns: 5_000,
        flusher_period_ns: None,
        commit_delay: None,
    }
}

/// Clients that each do the same on two cores, recorded on a device of which only times are known: 20 µs.
pub fn work(clients: u32, steps: &[Step], grouping: CommitGrouping) -> Work {
    let places = [
        (Role::Log, 0, 1 << 22),
        (Role::Data, 1 << 22, 1 << 24),
        (Role::Temp, 1 << 25, 1 << 22),
    ];
    Work {
        cores: 2,
        memory_bytes: 8 << 30,
        sessions: (0..clients)
            .map(|index| session(&index.to_string(), 50, steps))
            .collect(),
        log: Some(log(grouping)),
        devices: vec![RecordedDevice {
            reads: vec![request()],
            writes: vec![request()],
            roles: places.to_vec(),
            ..RecordedDevice::default()
        }],
        footprints: places.iter().map(|place| (place.0, place.2)).collect(),
        ..Work::default()
    }
}

/// A recorded request of 20 us.
fn request() -> RecordedRequest {
    RecordedRequest {
        sectors: 8,
        depth: 0,
        time_ns: 20_000,
        log: false,
    }
}

/// Update, append, commit: the shape of TPC-B with `cpu_us` of processor.
pub fn update(cpu_us: u32) -> [Step; 4] {
    [
        cpu(cpu_us - cpu_us / 4),
        Step::Append { size_bytes: 600 },
        Step::Commit,
        cpu(cpu_us / 4),
    ]
}

/// A lock of so many keys, held over the commit.
pub fn hot_lock(keys: u32) -> HotLock {
    HotLock {
        name: "row".into(),
        keys,
        observed_share: 0.0,
        over_commit: true,
        retry_ns: Vec::new(),
        late_ns: Vec::new(),
    }
}

/// All roles on one device.
pub fn all_on(profile: Profile, span_ns: u64, seed: u64) -> Scenario {
    let placement = Role::ALL.map(|role| (role, 1)).to_vec();
    Scenario {
        devices: vec![None, Some(profile)],
        placement,
        ..Scenario::recorded(1, 2, ReplayMode::Steady { span_ns }, seed)
    }
}

/// What one session at a time has from its asking until its commit; the others sleep so long and ask again.
pub fn right_to_write(retry_ns: Vec<u64>) -> HotLock {
    HotLock {
        name: "the right to write".into(),
        keys: 1,
        observed_share: 0.0,
        over_commit: true,
        retry_ns,
        late_ns: Vec::new(),
    }
}

/// Asserts that a figure is within a share of what is expected.
pub fn close(found: f64, expected: f64, error: f64) {
    assert!(
        (found / expected - 1.0).abs() < error,
        "{found} is not about {expected}"
    );
}

/// Clients that read, then write and commit with the right to do so, and do a little more.
pub fn writers(clients: u32, retry_ns: Vec<u64>) -> Work {
    let steps = [
        cpu(100),
        Step::Lock { lock: 0 },
        cpu(400),
        Step::Append { size_bytes: 4120 },
        Step::Commit,
        cpu(100),
    ];
    let mut work = work(clients, &steps, CommitGrouping::Exclusive);
    work.locks = vec![right_to_write(retry_ns)];
    work
}
