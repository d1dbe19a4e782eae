//! Commands to a running server: a Unix socket, one JSON object a line each way.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::clock;
use crate::service::{Reply, Service};
use crate::stats::DeviceStats;
use crate::undo_log::CutReport;

/// What can be asked.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
enum Command {
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
    Fail { after: After },
    /// The device takes `factor` times as long for everything, for `length_s` seconds.
    Slow { factor: f64, length_s: f64 },
    /// Reads of the sectors from `first` to `last` fail until something is written there.
    Unreadable { first: u64, last: u64 },
}

/// When a device dies.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum After {
    Seconds(f64),
    Requests(u64),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Answer {
    Stats {
        stats: DeviceStats,
        warnings: Vec<String>,
    },
    Cut {
        cut: CutReport,
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

/// Answers commands until the process ends; `warnings` are part of every answer to `stats`.
pub(crate) fn listen<R: Reply + 'static>(
    listener: &UnixListener,
    service: &Arc<Service<R>>,
    warnings: &[String],
) {
    for stream in listener.incoming().flatten() {
        let (service, warnings) = (Arc::clone(service), warnings.to_vec());
        std::thread::spawn(move || converse(&stream, &service, &warnings));
    }
}

fn converse<R: Reply>(
    stream: &UnixStream,
    service: &Service<R>,
    warnings: &[String],
) -> io::Result<()> {
    let mut writer = stream;
    for line in BufReader::new(stream).lines() {
        let answer = serde_json::from_str(&line?)
            .map_err(|error| error.to_string())
            .and_then(|command| obey(command, service, warnings))
            .unwrap_or_else(|error| Answer::Error { error });
        let mut text = serde_json::to_string(&answer)?;
        text.push('\n');
        writer.write_all(text.as_bytes())?;
    }
    Ok(())
}

fn obey<R: Reply>(
    command: Command,
    service: &Service<R>,
    warnings: &[String],
) -> Result<Answer, String> {
    match command {
        Command::Stats => {
            return Ok(Answer::Stats {
                stats: service.report(),
                warnings: warnings.to_vec(),
            });
        }
        Command::Cut { keep_random } => {
            let cut = service.cut(keep_random);
            return Ok(Answer::Cut { cut });
        }
        Command::ResetStats => service.reset_counters(),
        Command::Timing { on } => service.set_timing(on),
        Command::Path { us } => service.set_path((us * 1e3) as u64),
        Command::Fail { after } => match after {
            After::Seconds(seconds) => service.faults().die_at(clock::now() + nanos(seconds)?),
            After::Requests(requests) => service.faults().die_after(requests),
        },
        Command::Slow { factor, length_s } => {
            if !(1.0..=LARGEST_FACTOR).contains(&factor) {
                return Err(format!(
                    "a factor of {factor} is not between 1 and {LARGEST_FACTOR}"
                ));
            }
            service.slow(factor, nanos(length_s)?);
        }
        Command::Unreadable { first, last } => {
            let sectors = sectors(first, last, service.size_sectors())?;
            service.faults().make_unreadable(sectors);
        }
    }
    Ok(Answer::Done {})
}

fn nanos(seconds: f64) -> Result<u64, String> {
    if (0.0..=LONGEST_S).contains(&seconds) {
        Ok((seconds * 1e9) as u64)
    } else {
        Err(format!(
            "a time of {seconds} s is not between 0 and {LONGEST_S}"
        ))
    }
}

fn sectors(first: u64, last: u64, size: u64) -> Result<std::ops::RangeInclusive<u64>, String> {
    if first <= last && last < size {
        Ok(first..=last)
    } else {
        Err(format!(
            "sectors {first} to {last} are no range within the {size} sectors of the disk"
        ))
    }
}
