//! Commands to a running server: a Unix socket, one JSON object a line each way.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::service::{Reply, Service};
use crate::stats::DeviceStats;

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
    /// The latency of the path that the server is to make good.
    Path { us: f64 },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Answer {
    Stats {
        stats: DeviceStats,
        warnings: Vec<String>,
    },
    Done {},
    Error {
        error: String,
    },
}

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
        let answer = match serde_json::from_str(&line?) {
            Ok(command) => obey(command, service, warnings),
            Err(error) => Answer::Error {
                error: error.to_string(),
            },
        };
        let mut text = serde_json::to_string(&answer)?;
        text.push('\n');
        writer.write_all(text.as_bytes())?;
    }
    Ok(())
}

fn obey<R: Reply>(command: Command, service: &Service<R>, warnings: &[String]) -> Answer {
    match command {
        Command::Stats => {
            return Answer::Stats {
                stats: service.report(),
                warnings: warnings.to_vec(),
            };
        }
        Command::ResetStats => service.reset_counters(),
        Command::Timing { on } => service.set_timing(on),
        Command::Path { us } => service.set_path((us * 1e3) as u64),
    }
    Answer::Done {}
}
