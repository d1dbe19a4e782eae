//! The schedule of a recording, which is bursts with unrecorded time between them, and the disk space that it takes.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use chrono::{SecondsFormat, Utc};
use tierwise_recording::{About, Role};

use crate::UserError;
use crate::database::servers::{Target, Wanted};
use crate::database::settings::settings_of;
use crate::host::devices::Devices;
use crate::host::machine;
use crate::output::{self, Output};
use crate::session::{Session, Subject};
use crate::tracer::{BurstSummary, Places, require_possible};

/// More leaves too little unrecorded time to compare with, and too much data to bound.
const MOST_DUTY: f64 = 0.5;
const LONGEST_S: f64 = 7.0 * 86_400.0;
/// Time before a burst, as a share of the room in its period.
const EARLIEST: f64 = 0.25;
const LONGEST_BURST_S: f64 = 0.5;
/// Bursts of a short recording. What recording costs is known by how bursts differ from the time beside them: of two
/// bursts, half of that interval is 12.7 standard errors, of eight 2.4.
const FEW_BURSTS: f64 = 8.0;
/// A shorter one cuts too many transactions of a slow disk at its edges.
const SHORT_BURST_S: f64 = 0.1;
const LEAST_BURST_S: f64 = 0.01;

/// Length of a burst: half a second, or an eighth of what is recorded; a quarter of very little. Of a recording without
/// pauses, or of no known length, half a second.
#[must_use]
pub fn default_burst_s(seconds: Option<f64>, duty: f64) -> f64 {
    let Some(seconds) = seconds.filter(|_| duty < 1.0) else {
        return LONGEST_BURST_S;
    };
    let recorded_s = seconds * duty;
    let short_s = (recorded_s / FEW_BURSTS).max((recorded_s / 4.0).min(SHORT_BURST_S));
    short_s.clamp(LEAST_BURST_S, LONGEST_BURST_S)
}

/// Bursts of `burst` that cover `duty` of the time.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// Length of the recording.
    pub length: Duration,
    /// Share of the time in which events are recorded.
    pub duty: f64,
    /// Length of one burst.
    pub burst: Duration,
}

impl Schedule {
    /// Of these times in seconds.
    ///
    /// # Errors
    /// If one of them cannot be, naming the option.
    pub fn new(seconds: f64, duty: f64, burst_s: f64) -> Result<Self, UserError> {
        let refused = |option: &str, value: f64, fix: &str| {
            Err(UserError::new(format!("{option}: {value} is none"), fix))
        };
        if !(seconds > 0.0 && seconds <= LONGEST_S) {
            return refused("--seconds", seconds, "use more than 0 s and at most a week");
        }
        if !(duty > 0.0 && duty <= MOST_DUTY) {
            let fix = "use a share of the time such as 1/10, at most 1/2";
            return refused("--duty", duty, fix);
        }
        if !(LEAST_BURST_S..=60.0).contains(&burst_s) {
            return refused("--burst", burst_s, "use 0.01 to 60 s");
        }
        Ok(Self {
            length: Duration::from_secs_f64(seconds),
            duty,
            burst: Duration::from_secs_f64(burst_s),
        })
    }

    /// Time in which events are recorded.
    pub fn recorded(&self) -> Duration {
        let shortest = self.burst.min(self.length);
        self.length.mul_f64(self.duty).max(shortest)
    }

    /// Time before each burst, without end: randomised, with one burst in each period.
    ///
    /// A burst at a fixed point of every period would alias with periodic work.
    pub fn gaps(&self) -> impl Iterator<Item = Duration> {
        let room = self.burst.div_f64(self.duty) - self.burst;
        let (mut state, mut rest) = (1, Duration::ZERO);
        std::iter::from_fn(move || {
            let share = EARLIEST + (1.0 - 2.0 * EARLIEST) * uniform(&mut state);
            let before = room.mul_f64(share);
            let gap = rest + before;
            rest = room - before;
            Some(gap)
        })
    }
}

/// A number from 0 to 1, by SplitMix64 (Steele, Lea and Flood, 2014).
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// A recording ends early when it has reached this size, by default.
pub const DEFAULT_LIMIT_BYTES: u64 = 1_000_000_000;

/// Bytes that one event takes in a recording under pgbench: 3.7 with 468,000 events/s (docs/how-to/record.md), 5.4 with
/// 24,000 events/s.
const EVENT_BYTES: f64 = 5.5;
/// The tables' own size and what is known about the machine.
const EMPTY_BYTES: f64 = 50_000.0;
/// A burst of more bytes waits in a file to be decoded, and so do all until this much waits in memory.
const LARGEST_IN_MEMORY: f64 = 64e6;
const MOST_WAITING: f64 = 256e6;
/// Free space must be this many times what is expected: a trial of 0.1 s does not see all of the load.
const SAFETY: u64 = 2;

/// What a recording is expected to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// In the end.
    pub expected_bytes: u64,
    /// Besides that while it runs, in files without names.
    pub waiting_bytes: u64,
}

impl DiskSpace {
    /// By the events of a trial.
    pub fn expected(trial: &BurstSummary, schedule: &Schedule) -> Self {
        let per_s = |count: u64| count as f64 / trial.length.as_secs_f64().max(1e-3);
        let recorded_s = schedule.recorded().as_secs_f64();
        let burst = per_s(trial.bytes) * schedule.burst.as_secs_f64();
        let waiting = (per_s(trial.bytes) * recorded_s).min(MOST_WAITING + 2.0 * burst);
        Self {
            expected_bytes: (EMPTY_BYTES + recorded_s * per_s(trial.events) * EVENT_BYTES) as u64,
            waiting_bytes: match burst > LARGEST_IN_MEMORY {
                true => waiting as u64,
                false => 0,
            },
        }
    }

    /// Refuses a file system that has too little left.
    pub fn require(&self, free_bytes: u64) -> Result<(), UserError> {
        let needed = SAFETY * self.expected_bytes + self.waiting_bytes;
        if free_bytes >= needed {
            return Ok(());
        }
        let (needed, free) = (megabytes(needed), megabytes(free_bytes));
        Err(UserError::new(
            format!("the recording needs {needed}, and {free} are free"),
            "name a directory on another file system, or record for a shorter time",
        ))
    }

    pub fn sentence(&self, limit_bytes: u64) -> String {
        let expected = megabytes(self.expected_bytes);
        let waiting = match self.waiting_bytes {
            0 => String::new(),
            bytes => format!(", {} more until it is decoded", megabytes(bytes)),
        };
        let limit = megabytes(limit_bytes);
        format!("the recording will take about {expected}{waiting}; it ends early at {limit}")
    }
}

pub fn size_of(events: u64) -> u64 {
    (events as f64 * EVENT_BYTES) as u64
}

/// A size in words.
#[must_use]
pub fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

// A recording by a schedule: the work of `tierwise-record`.

/// Bursts are kept in memory and read without delay; and the kernel takes 10 µs for each 4 KB it gives.
const BUFFER_BYTES: u64 = 16 << 20;
/// Length of the burst that is not kept, in which clients show themselves.
const TRIAL: Duration = Duration::from_millis(100);
/// Interval of the checks whether the recording is over.
const LOOKS_EACH: Duration = Duration::from_millis(200);

/// What is to be recorded, and how.
#[derive(Clone, Debug)]
pub struct Order {
    /// Which database.
    pub wanted: Wanted,
    /// Rules in place of those of its program: an engine's name or a TOML file.
    pub rules: Option<String>,
    /// Roles of files, before those of the rules: pattern of a path, role.
    pub roles: Vec<(String, Role)>,
    /// Directory of the recording, new or empty.
    pub out: PathBuf,
    /// When events are taken.
    pub schedule: Schedule,
    /// The recording ends early when it has reached this size.
    pub limit_bytes: u64,
}

/// Records until the time is over, `stop` is set or the database ends; what was recorded is kept. Gives the
/// description. `say` gets sentences for whoever waits.
///
/// # Errors
/// If nothing can be recorded here, there is no such database, or the file system refuses.
pub fn record(order: &Order, stop: &AtomicBool, say: &dyn Fn(&str)) -> Result<About, UserError> {
    require_possible()?;
    output::sweep()?;
    let scheduled = Scheduled {
        order,
        stop,
        say,
        target: Target::find(&order.wanted, order.rules.as_deref(), &order.roles)?,
        output: Output::begin(&order.out)?,
    };
    let made = scheduled.record();
    let made = made.map_err(|error| scheduled.output.explain(error))?;
    scheduled.output.keep()?;
    Ok(made)
}

struct Scheduled<'a> {
    order: &'a Order,
    stop: &'a AtomicBool,
    say: &'a dyn Fn(&str),
    target: Target,
    output: Output,
}

impl Scheduled<'_> {
    fn record(&self) -> Result<About, UserError> {
        let (target, order) = (&self.target, self.order);
        let server = target.server();
        (self.say)(&format!("attaching to {server}"));
        // The engine's version, settings and counters need a connection to it.
        let prepared = About {
            started_at: Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true),
            tierwise: env!("CARGO_PKG_VERSION").to_owned(),
            engine: server.engine,
            engine_version: server.version,
            settings: settings_of(target.pid, &target.rules, &target.root),
            machine: machine::describe(target.pid),
            warnings: target.rules.warnings(true),
            ..About::default()
        };
        let subject = Subject {
            first_pid: Some(target.pid),
            pids: target.processes(),
            rules: target.rules.clone(),
            role_of: None,
            root: target.root.clone(),
            devices: Devices::mounted(target.mounts_of(), Vec::new()),
            disk_server_pids: None,
        };
        let places = Places {
            buffer_bytes: BUFFER_BYTES,
            spool_dir: self.output.path(),
            out: self.output.path(),
            whole: false,
        };
        let mut session = Session::attach(subject, places)?;
        let trial = session.find_clients(TRIAL)?;
        let space = DiskSpace::expected(&trial, &order.schedule);
        (self.say)(&space.sentence(order.limit_bytes));
        space.require(machine::free_bytes(&self.output.path()).unwrap_or(u64::MAX))?;
        let began = Instant::now();
        session.begin_unrecorded();
        self.take_bursts(&mut session, began + order.schedule.length)?;
        (self.say)("decoding");
        session.finish(About {
            duration_s: began.elapsed().as_secs_f64(),
            ..prepared
        })
    }

    fn take_bursts(&self, session: &mut Session, ends: Instant) -> Result<(), UserError> {
        let (target, schedule) = (&self.target, self.order.schedule);
        for gap in schedule.gaps() {
            let look = || session.look_for_clients();
            if self.over_after(gap, ends, look) || self.full(session)? {
                break;
            }
            if let Err(error) = session.begin_burst(target.processes()) {
                if target.alive() {
                    return Err(error);
                }
                break;
            }
            self.over_after(schedule.burst, ends, || ());
            if let Some(burst) = session.end_burst(target.processes())? {
                let events = burst.events;
                (self.say)(&format!("recording: {events} events in the last burst"));
            }
        }
        if target.alive() {
            session.end_unrecorded();
        }
        Ok(())
    }

    /// Waits, at most until the recording is over, and may do something meanwhile; gives whether it is over.
    fn over_after(&self, time: Duration, ends: Instant, mut meanwhile: impl FnMut()) -> bool {
        let until = (Instant::now() + time).min(ends);
        while !self.stop.load(Ordering::Relaxed) && self.target.alive() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return until >= ends;
            }
            meanwhile();
            thread::sleep(left.min(LOOKS_EACH));
        }
        true
    }

    fn full(&self, session: &Session) -> Result<bool, UserError> {
        let reached = self.output.size_bytes().max(session.taken()?.bytes);
        let full = reached >= self.order.limit_bytes;
        if full {
            let limit = megabytes(self.order.limit_bytes);
            (self.say)(&format!("the recording has reached its limit of {limit}"));
        }
        Ok(full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_take_their_share_of_the_time_at_no_fixed_point() {
        let schedule = Schedule::new(60.0, 0.1, 0.5).unwrap();
        let gaps_s = schedule.gaps().take(200).map(|gap| gap.as_secs_f64());
        let gaps_s: Vec<f64> = gaps_s.collect();
        let recorded_s = 0.5 * gaps_s.len() as f64;
        let duty = recorded_s / (recorded_s + gaps_s.iter().sum::<f64>());
        assert!((duty - 0.1).abs() < 0.002, "{duty}");
        let mut different: Vec<_> = gaps_s.iter().map(|gap| (gap * 1e6) as u64).collect();
        different.sort_unstable();
        different.dedup();
        assert!(different.len() > 100 && different[0] > 0);
        assert_eq!(schedule.recorded(), Duration::from_secs(6));
    }

    #[test]
    fn a_short_recording_has_eight_bursts() {
        let lengths_s =
            [60.0, 20.0, 5.0, 1.0, 0.1].map(|seconds| default_burst_s(Some(seconds), 0.1));
        assert_eq!(lengths_s, [0.5, 0.25, 0.1, 0.025, 0.01]);
    }

    #[test]
    fn what_cannot_be_is_told_with_its_option() {
        let message =
            |seconds, duty, burst| Schedule::new(seconds, duty, burst).unwrap_err().message;
        assert!(message(0.0, 0.1, 0.5).starts_with("--seconds"));
        assert!(message(f64::NAN, 0.1, 0.5).starts_with("--seconds"));
        assert!(message(1.0, 2.0, 0.5).starts_with("--duty"));
        assert!(message(1.0, 0.1, 1e9).starts_with("--burst"));
    }

    fn space(events: u64, bytes: u64) -> DiskSpace {
        let schedule = Schedule::new(60.0, 0.1, 0.5).unwrap();
        let trial = BurstSummary {
            clients: 1,
            events,
            bytes,
            length: Duration::from_millis(100),
        };
        DiskSpace::expected(&trial, &schedule)
    }

    #[test]
    fn space_follows_from_the_events_of_the_trial() {
        let busy = space(46_800, 2_000_000);
        assert_eq!((busy.expected_bytes, busy.waiting_bytes), (15_494_000, 0));
        assert!(busy.require(31_000_000).is_ok());
        let refused = busy.require(30_000_000).unwrap_err();
        assert_eq!(
            refused.message,
            "the recording needs 31.0 MB, and 30.0 MB are free"
        );
        let sentence = busy.sentence(1_000_000_000);
        assert!(sentence.ends_with("about 15.5 MB; it ends early at 1000.0 MB"));
    }

    #[test]
    fn bursts_that_wait_in_files_are_counted_too() {
        let huge = space(500_000, 20_000_000);
        assert_eq!(huge.waiting_bytes, 456_000_000);
        let sentence = huge.sentence(0);
        assert!(sentence.contains("456.0 MB more until it is decoded"));
    }
}
