//! Commands to a running server: a Unix socket, one JSON object a line each way.

use std::io::{self, BufRead, BufReader, Write};
use std::ops::RangeInclusive;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::mpsc::{Sender, SyncSender, sync_channel};

use serde::{Deserialize, Serialize};
use tierwise_device::Nanos;

use crate::device_counters::DeviceStats;
use crate::event_loop::CommandOutcome;
use crate::pacer::DiskFaults;
use crate::transport::Waker;
use crate::transport::ublk::UblkDevices;
use crate::undo_log::CutReport;

/// What can be asked.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ControlCommand {
    /// Counters since the last reset.
    Stats,
    /// Start counters from zero.
    ResetStats,
    /// Answer at the pace of the model, or at once.
    Timing { on: bool },
    /// The latency of the path that the server is to compensate for.
    Path { us: f64 },
    /// The power goes and comes back; a seed keeps a random subset of the unflushed writes.
    Cut { keep_random: Option<u64> },
    /// The device dies.
    Fail { after: DeathMoment },
    /// The device takes `factor` times as long for everything, for `length_s` seconds.
    Slow { factor: f64, length_s: f64 },
    /// Reads of the sectors from `first` to `last` fail until something is written there.
    Unreadable { first: u64, last: u64 },
    /// Make a block device of each partition, if the transport makes any.
    Attach,
    /// Remove them; with `end`, the server ends too.
    Detach { end: bool },
}

/// When a device dies.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DeathMoment {
    Seconds(f64),
    Requests(u64),
}

#[derive(Serialize)]
#[serde(untagged)]
enum ControlAnswer {
    Stats {
        stats: DeviceStats,
        warnings: Vec<String>,
    },
    Cut {
        cut: CutReport,
    },
    Attached {
        devices: Vec<String>,
    },
    Done {},
    Error {
        error: String,
    },
}

/// Longest time that a command may name: no disk is up for a year.
const LONGEST_S: f64 = 365.0 * 86_400.0;

/// Largest factor by which a device may be slowed; a model's second is then 11 days.
const LARGEST_FACTOR: f64 = 1e6;

/// A command on its way to the thread that serves the device, and the way back.
pub(crate) struct PendingCommand {
    command: ControlCommand,
    outcome: SyncSender<Result<CommandOutcome, String>>,
}

impl PendingCommand {
    pub fn answer(self, obey: impl FnOnce(ControlCommand) -> Result<CommandOutcome, String>) {
        // Whoever asked may have given up.
        drop(self.outcome.send(obey(self.command)));
    }
}

/// Sends commands to the thread that serves the device.
pub(crate) struct CommandSender {
    pub sender: Sender<PendingCommand>,
    pub waker: Waker,
    /// Part of every answer to `stats`.
    pub warnings: Vec<String>,
    /// Where the transport makes block devices. Other transports show files.
    pub devices: Option<Arc<UblkDevices>>,
}

impl CommandSender {
    fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            sender: self.sender.clone(),
            waker: self.waker.try_clone()?,
            warnings: self.warnings.clone(),
            devices: self.devices.clone(),
        })
    }

    fn answer(&self, command: ControlCommand) -> Result<ControlAnswer, String> {
        match command {
            ControlCommand::Attach => self.attach(),
            ControlCommand::Detach { end } => self.detach(end),
            command => self.ask(command),
        }
    }

    fn attach(&self) -> Result<ControlAnswer, String> {
        let devices = self.devices.as_ref().map(|devices| devices.attach());
        let devices = devices.transpose().map_err(|error| error.to_string())?;
        Ok(ControlAnswer::Attached {
            devices: devices.unwrap_or_default(),
        })
    }

    fn detach(&self, end: bool) -> Result<ControlAnswer, String> {
        if let Some(devices) = &self.devices {
            devices.detach().map_err(|error| error.to_string())?;
            if end {
                devices.end().map_err(|error| error.to_string())?;
            }
        }
        Ok(ControlAnswer::Done {})
    }

    /// Has the thread that serves the device obey a command.
    fn ask(&self, command: ControlCommand) -> Result<ControlAnswer, String> {
        let (outcome, answer) = sync_channel(1);
        let ended = |_| "the device is no longer served".to_owned();
        let asked = PendingCommand { command, outcome };
        self.sender.send(asked).map_err(|_| ended(()))?;
        self.waker.wake();
        Ok(match answer.recv().map_err(|_| ended(()))?? {
            CommandOutcome::Stats(stats) => ControlAnswer::Stats {
                stats,
                warnings: self.warnings.clone(),
            },
            CommandOutcome::Cut(cut) => ControlAnswer::Cut { cut },
            CommandOutcome::Done => ControlAnswer::Done {},
        })
    }
}

/// Answers commands until the process ends.
pub(crate) fn answer_control_socket(listener: &UnixListener, commands: &CommandSender) {
    for stream in listener.incoming().flatten() {
        if let Ok(commands) = commands.try_clone() {
            // Without a thread, the connection closes unanswered.
            let _ =
                std::thread::Builder::new().spawn(move || answer_connection(&stream, &commands));
        }
    }
}

fn answer_connection(stream: &UnixStream, commands: &CommandSender) -> io::Result<()> {
    let mut writer = stream;
    for line in BufReader::new(stream).lines() {
        let answer = serde_json::from_str(&line?)
            .map_err(|error| error.to_string())
            .and_then(|command| commands.answer(command))
            .unwrap_or_else(|error| ControlAnswer::Error { error });
        let mut text = serde_json::to_string(&answer)?;
        text.push('\n');
        writer.write_all(text.as_bytes())?;
    }
    Ok(())
}

impl DeathMoment {
    pub fn apply(self, now: Nanos, faults: &mut DiskFaults) -> Result<(), String> {
        match self {
            Self::Seconds(seconds) => faults.die_at(now + nanos_of_seconds(seconds)?),
            Self::Requests(requests) => faults.die_after(requests),
        }
        Ok(())
    }
}

impl ControlCommand {
    /// Length of a slow phase.
    pub fn slow_length(factor: f64, length_s: f64) -> Result<Nanos, String> {
        if !(1.0..=LARGEST_FACTOR).contains(&factor) {
            return Err(format!(
                "a factor of {factor} is not between 1 and {LARGEST_FACTOR}"
            ));
        }
        nanos_of_seconds(length_s)
    }

    /// A range of a device's sectors.
    pub fn sectors(first: u64, last: u64, size: u64) -> Result<RangeInclusive<u64>, String> {
        if first <= last && last < size {
            Ok(first..=last)
        } else {
            Err(format!(
                "sectors {first} to {last} are no range within the {size} sectors of the disk"
            ))
        }
    }
}

fn nanos_of_seconds(seconds: f64) -> Result<Nanos, String> {
    if (0.0..=LONGEST_S).contains(&seconds) {
        Ok((seconds * 1e9) as Nanos)
    } else {
        Err(format!(
            "a time of {seconds} s is not between 0 and {LONGEST_S}"
        ))
    }
}
