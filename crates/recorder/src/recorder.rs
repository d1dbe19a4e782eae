//! Records a running target to disk: tracer, timeline and writer together.
//!
//! Taking events and decoding them are separate, and may run at the same time on two threads. Decoding beside
//! a busy database would cost it more than the tracing does.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tierwise_recording::{About, RecordingError, Rules, Writer};

use crate::decoding::Decoding;
use crate::timeline::{DeviceRange, FileFacts};
use crate::tracer::{BurstTracer, Decoder, Options, RawBurst, TracerError, clients_in};

/// A recording under way.
pub struct Recorder {
    tracer: Mutex<Option<BurstTracer>>,
    waiting: Mutex<VecDeque<RawBurst>>,
    decoding: Mutex<Option<Decoding>>,
    decoder: Arc<Decoder>,
}

/// Facts about a burst at the moment it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct BurstSummary {
    /// From, monotonic clock.
    pub start_ns: u64,
    /// To.
    pub end_ns: u64,
    /// Events taken.
    pub events: u64,
    /// Events that the kernel dropped.
    pub lost: u64,
    /// Bytes from the kernel, which wait to be decoded.
    pub bytes: u64,
    /// Files that were open when it began or were opened in it.
    pub paths: Vec<String>,
}

/// A burst that is not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trial {
    /// Clients that were found, followed from now on.
    pub clients: usize,
    /// Events taken.
    pub events: u64,
    /// Bytes from the kernel.
    pub bytes: u64,
    /// How long it was: on a busy machine longer than asked for.
    pub length: Duration,
}

/// Errors that keep a recording from being made.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// Tracing failed.
    #[error("{0}")]
    Tracer(#[from] TracerError),
    /// Writing failed.
    #[error("{0}")]
    Recording(#[from] RecordingError),
}

impl RecorderError {
    /// What to do about it, in the imperative.
    #[must_use]
    pub fn fix(&self) -> &str {
        match self {
            Self::Tracer(error) => &error.fix,
            Self::Recording(error) => &error.fix,
        }
    }
}

impl Recorder {
    /// Attaches to what `options` name and begins a recording in `directory`; nothing is switched on yet.
    ///
    /// # Errors
    /// If nothing can be traced here, or the directory holds a recording.
    pub fn attach(
        options: Options,
        rules: Rules,
        devices: Vec<DeviceRange>,
        directory: &Path,
    ) -> Result<Self, RecorderError> {
        let tracer = BurstTracer::attach(options)?;
        let decoding = Decoding::new(devices, Writer::create(directory)?, rules);
        Ok(Self {
            decoder: tracer.decoder(),
            tracer: Mutex::new(Some(tracer)),
            waiting: Mutex::default(),
            decoding: Mutex::new(Some(decoding)),
        })
    }

    /// Traces other processes from the next burst on.
    ///
    /// # Errors
    /// If the recording has ended.
    pub fn set_processes(&self, pids: Vec<i32>) -> Result<(), RecorderError> {
        with(&self.tracer, |tracer| {
            tracer.set_processes(pids);
            Ok(())
        })
    }

    /// Follows the scheduling of these threads, which are clients, from the next burst on.
    ///
    /// # Errors
    /// If the recording has ended.
    pub fn set_clients(&self, tids: Vec<i32>) -> Result<(), RecorderError> {
        with(&self.tracer, |tracer| {
            tracer.set_clients(tids);
            Ok(())
        })
    }

    /// Finds the clients by their wake-ups in a burst that is not kept.
    ///
    /// # Errors
    /// If the kernel refuses, or no process is left.
    pub fn find_clients(&self, duration: Duration) -> Result<Trial, RecorderError> {
        with(&self.tracer, |tracer| {
            tracer.begin()?;
            thread::sleep(duration);
            let Some(burst) = tracer.end()? else {
                return Ok(Trial::default());
            };
            let clients = clients_in(&burst, &self.decoder);
            let trial = Trial {
                clients: clients.len(),
                events: burst.events,
                bytes: burst.bytes(),
                length: Duration::from_nanos(burst.end_ns.saturating_sub(burst.start_ns)),
            };
            tracer.set_clients(clients);
            Ok(trial)
        })
    }

    /// Begins a burst.
    ///
    /// # Errors
    /// If the kernel refuses, or no process is left.
    pub fn begin(&self) -> Result<(), RecorderError> {
        with(&self.tracer, |tracer| Ok(tracer.begin()?))
    }

    /// Events of the burst under way.
    ///
    /// # Errors
    /// If the recording has ended.
    pub fn burst_events(&self) -> Result<u64, RecorderError> {
        with(&self.tracer, |tracer| Ok(tracer.events()))
    }

    /// Ends a burst; none if none was begun.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn end(&self) -> Result<Option<BurstSummary>, RecorderError> {
        let Some(raw) = with(&self.tracer, |tracer| Ok(tracer.end()?))? else {
            return Ok(None);
        };
        let summary = BurstSummary {
            start_ns: raw.start_ns,
            end_ns: raw.end_ns,
            events: raw.events,
            lost: raw.lost_events,
            bytes: raw.bytes(),
            paths: raw.paths().into_iter().collect(),
        };
        lock(&self.waiting).push_back(raw);
        Ok(Some(summary))
    }

    /// Decodes the oldest burst that waits and writes its rows; returns the number of its events, or none if
    /// no burst waits. `resolve` is asked for the facts of files, in the order of their paths.
    ///
    /// # Errors
    /// Those of `resolve`, and if the file system refuses.
    pub fn decode<E: From<RecorderError>>(
        &self,
        resolve: impl FnOnce(Vec<String>) -> Result<Vec<FileFacts>, E>,
    ) -> Result<Option<u64>, E> {
        let mut decoding = lock(&self.decoding);
        let Some(raw) = lock(&self.waiting).pop_front() else {
            return Ok(None);
        };
        let decoding = decoding.as_mut().ok_or_else(ended)?;
        let events = decoding.push(&raw, &self.decoder);
        decoding.describe(resolve)?;
        decoding.write(&raw).map_err(RecorderError::from)?;
        Ok(Some(events))
    }

    /// Writes the bursts decoded by now to another directory, as a recording that ended here; `about` is
    /// completed from the bursts.
    ///
    /// # Errors
    /// If the file system refuses, or the recording has ended.
    pub fn snapshot(&self, mut about: About, directory: &Path) -> Result<About, RecorderError> {
        with(&self.decoding, |decoding| {
            Ok(decoding.snapshot(&mut about, directory)?)
        })?;
        Ok(about)
    }

    /// Detaches, and ends the recording; `about` is completed from the bursts.
    ///
    /// # Errors
    /// If the file system refuses, or it was ended before.
    pub fn finish(&self, mut about: About) -> Result<About, RecorderError> {
        self.close();
        let decoding = lock(&self.decoding).take().ok_or_else(ended)?;
        decoding.finish(&mut about)?;
        Ok(about)
    }

    /// Detaches and restores the machine's state. No error if already detached.
    pub fn close(&self) {
        lock(&self.tracer).take();
    }
}

fn with<P, T>(
    part: &Mutex<Option<P>>,
    action: impl FnOnce(&mut P) -> Result<T, RecorderError>,
) -> Result<T, RecorderError> {
    action(lock(part).as_mut().ok_or_else(ended)?)
}

fn ended() -> RecorderError {
    TracerError::new("the recording has ended", "attach again for another").into()
}

/// Ignores poisoning: each step leaves the state whole, so a panic of another thread does no harm.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
