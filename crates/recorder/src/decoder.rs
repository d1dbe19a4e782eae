//! Decodes bursts during the run on an idle core, or else after the run.
//!
//! Decoding a burst takes longer than tracing one. A low priority alone does not protect a busy database: where the
//! kernel first shares cores between groups of processes, the recorder's group gets the same share as the
//! database's. So the thread waits until a core is idle or too much waits. Only facts of files are looked up at
//! once, because a file may be gone later.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};

use crate::timeline::FileFacts;
use crate::{BurstSummary, Recorder, RecorderError};

use crate::RecordError;
use crate::host::cpu::{self, IdleCores, LOOKS_EACH};
use crate::host::files::Files;

const MOST_WAITING_BYTES: u64 = 256 << 20;

/// A thread that decodes.
pub struct Decoder {
    bursts: Sender<Told>,
    thread: JoinHandle<Result<Files, RecorderError>>,
}

enum Told {
    Burst(BurstSummary),
    /// No more bursts come, and all that wait are to be decoded.
    End,
}

/// A burst that waits, with the facts of its files when it ended.
struct Waiting {
    bytes: u64,
    facts: HashMap<String, FileFacts>,
}

impl Decoder {
    /// Starts the thread; dropping what this returns leaves the bursts that wait undecoded.
    pub fn start(recorder: Arc<Recorder>, files: Files) -> Self {
        let (bursts, told) = mpsc::channel();
        let thread = thread::spawn(move || {
            cpu::run_when_idle(true);
            let backlog = Backlog {
                recorder: &recorder,
                files,
                waiting: VecDeque::new(),
            };
            backlog.run(&told)
        });
        Self { bursts, thread }
    }

    /// Adds a burst.
    pub fn burst_ended(&self, burst: BurstSummary) {
        // A thread that has failed is asked for its error at the end.
        let _ = self.bursts.send(Told::Burst(burst));
    }

    /// Leaves the bursts that wait undecoded, and waits for the one that is being decoded.
    pub fn abandon(self) {
        drop(self.bursts);
        // A failure matters to nobody.
        let _ = self.thread.join();
    }

    /// Decodes the remaining bursts at full speed.
    pub fn finish(self) -> Result<Files, RecordError> {
        let _ = self.bursts.send(Told::End);
        let ended = self.thread.join();
        let ended = ended.map_err(|_| RecordError::new("the decoder ended", "report this"))?;
        Ok(ended?)
    }
}

struct Backlog<'a> {
    recorder: &'a Recorder,
    files: Files,
    waiting: VecDeque<Waiting>,
}

impl Backlog<'_> {
    fn run(mut self, told: &Receiver<Told>) -> Result<Files, RecorderError> {
        let mut idle = IdleCores::now();
        loop {
            let next = match self.waiting.is_empty() {
                true => told.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => told.recv_timeout(LOOKS_EACH),
            };
            match next {
                Ok(Told::Burst(burst)) => self.waiting.push_back(Waiting {
                    bytes: burst.bytes,
                    facts: self.files.snapshot(&burst.paths),
                }),
                Ok(Told::End) => {
                    cpu::run_when_idle(false);
                    while self.decode()? {}
                    return Ok(self.files);
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(self.files),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if !self.waiting.is_empty() && (self.too_much_waits() || idle.enough()) {
                self.decode()?;
                idle = IdleCores::now();
            }
        }
    }

    fn too_much_waits(&self) -> bool {
        let bytes: u64 = self.waiting.iter().map(|burst| burst.bytes).sum();
        bytes > MOST_WAITING_BYTES
    }

    /// Decodes the oldest burst, if there is one.
    fn decode(&mut self) -> Result<bool, RecorderError> {
        let Some(burst) = self.waiting.pop_front() else {
            return Ok(false);
        };
        let files = &mut self.files;
        let resolve = |paths| Ok::<_, RecorderError>(files.resolve(paths, &burst.facts));
        Ok(self.recorder.decode(resolve)?.is_some())
    }
}
