//! Decodes bursts into rows on disk during the run on an idle core, or else after the run.
//!
//! Decoding a burst takes longer than tracing one. A low priority alone does not protect a busy database: where the
//! kernel first shares cores between groups of processes, the recorder's group gets the same share as the
//! database's. So the thread waits until a core is idle or too much waits. Only facts of files are looked up at
//! once, because a file may be gone later.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;

use tierwise_recording::{About, Burst, Check, Losses, ThreadClass, UserError, Writer};

use crate::foreign_cpu::OtherProgramsCpu;
use crate::host::files::FileDescriber;
use crate::host::machine::{self, IdleCores, LOOKS_EACH};
use crate::host::processes::LiveThread;
use crate::timeline::{FileFacts, Timeline};
use crate::tracer::RawBurst;

const MOST_WAITING_BYTES: u64 = 256 << 20;

/// A recording's rows and the facts about its bursts, which grow as bursts are decoded.
pub struct RecordingDecoder {
    pub files: FileDescriber,
    timeline: Timeline,
    writer: Writer,
    bursts: Vec<Burst>,
    losses: Losses,
    cpu: OtherProgramsCpu,
    /// Files that were opened, and those among them whose path is not known.
    opens: (u64, u64),
}

impl RecordingDecoder {
    /// Begins a recording in `directory`.
    pub fn begin(files: FileDescriber, directory: &Path) -> Result<Self, UserError> {
        Ok(Self {
            timeline: Timeline::new(files.devices.ranges()),
            writer: Writer::create(directory)?,
            files,
            bursts: Vec::new(),
            losses: Losses::default(),
            cpu: OtherProgramsCpu::default(),
            opens: (0, 0),
        })
    }

    fn decode_received(mut self, messages: &Receiver<DecoderMessage>) -> Result<Self, UserError> {
        let mut idle = IdleCores::now();
        // Each burst with the facts of its files when it ended.
        let mut waiting: VecDeque<(Box<RawBurst>, _)> = VecDeque::new();
        loop {
            let next = match waiting.is_empty() {
                true => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => messages.recv_timeout(LOOKS_EACH),
            };
            match next {
                Ok(DecoderMessage::Burst(burst)) => {
                    let facts = self.files.snapshot(&burst.paths());
                    waiting.push_back((burst, facts));
                }
                Ok(DecoderMessage::End) => {
                    machine::run_when_idle(0, false);
                    for (burst, facts) in waiting {
                        self.decode(&burst, &facts)?;
                    }
                    return Ok(self);
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(self),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let waiting_bytes: u64 = waiting.iter().map(|(burst, _)| burst.bytes()).sum();
            let too_many = waiting_bytes > MOST_WAITING_BYTES;
            if !waiting.is_empty() && (too_many || idle.enough()) {
                if let Some((burst, facts)) = waiting.pop_front() {
                    machine::run_when_idle(0, !too_many);
                    self.decode(&burst, &facts)?;
                    machine::run_when_idle(0, true);
                }
                idle = IdleCores::now();
            }
        }
    }

    /// Decodes a burst and writes its rows. Facts of files that are not among `earlier` ones are looked up now.
    fn decode(
        &mut self,
        raw: &RawBurst,
        earlier: &HashMap<String, FileFacts>,
    ) -> Result<(), UserError> {
        self.push(raw);
        for (file, path) in self.timeline.paths_to_resolve() {
            let known = earlier.get(&path).cloned();
            let facts = known.unwrap_or_else(|| self.files.of(&path));
            self.timeline.describe_file(file, facts);
        }
        let rows = self.timeline.finish_burst();
        self.cpu.add(raw, &rows);
        self.writer.burst(rows)
    }

    fn push(&mut self, raw: &RawBurst) {
        for thread in &raw.threads {
            let class = self.class_of(thread, raw);
            self.timeline
                .see_thread(thread.pid, thread.tid, &thread.name, class);
        }
        raw.pids().for_each(|pid| self.timeline.forget_opens(pid));
        for file in &raw.files {
            self.timeline.see_open(file.pid, file.fd, &file.path);
        }
        let decoded = raw.decode(|event| self.timeline.push(event));
        self.name_new_threads(raw);
        self.bursts.push(Burst {
            start_ns: raw.start_ns,
            end_ns: raw.end_ns,
            storage_cpu: raw.cpu.storage,
        });
        self.opens.0 += decoded.opens;
        self.opens.1 += decoded.unresolved_opens;
        self.losses.recorded_events += decoded.events;
        self.losses.lost_events += raw.lost_events;
    }

    /// Classifies the threads that were started in the burst; one that also ended in it is taken for a thread
    /// of its process by the name that it gave itself.
    fn name_new_threads(&mut self, raw: &RawBurst) {
        let by_tid = |threads: &[LiveThread]| -> HashMap<i32, LiveThread> {
            (threads.iter().map(|thread| (thread.tid, thread.clone()))).collect()
        };
        let (known, new) = (by_tid(&raw.threads), by_tid(&raw.new_threads));
        for index in 0..self.timeline.threads().len() {
            let row = self.timeline.threads()[index].clone();
            let same = |thread: &&LiveThread| thread.pid == row.pid;
            let thread = match new.get(&row.tid).filter(same) {
                Some(thread) => thread.clone(),
                None if known.contains_key(&row.tid) => continue,
                None => match raw.threads.iter().find(same) {
                    Some(sibling) => LiveThread {
                        tid: row.tid,
                        name: row.name.clone(),
                        ..sibling.clone()
                    },
                    None => continue,
                },
            };
            let class = self.class_of(&thread, raw);
            self.timeline.set_class(index, class);
        }
    }

    fn class_of(&self, thread: &LiveThread, raw: &RawBurst) -> ThreadClass {
        if raw.clients.binary_search(&thread.tid).is_ok() {
            return ThreadClass::Client;
        }
        let rules = &self.files.rules;
        rules.class_of(&thread.process, &thread.command_line, &thread.name)
    }

    /// Writes the recording so far to another directory; completes its description.
    pub fn snapshot(&mut self, about: &mut About, directory: &Path) -> Result<(), UserError> {
        self.complete(about);
        let threads = self.timeline.threads().to_vec();
        let files = self.timeline.files().to_vec();
        self.writer
            .snapshot(directory, about.clone(), threads, files)
    }

    /// Ends the recording; completes its description.
    pub fn finish(self, about: &mut About) -> Result<(), UserError> {
        self.complete(about);
        let threads = self.timeline.threads().to_vec();
        let files = self.timeline.files().to_vec();
        self.writer.finish(about.clone(), threads, files)
    }

    fn complete(&self, about: &mut About) {
        about.bursts.clone_from(&self.bursts);
        about.losses = self.losses.clone();
        self.cpu.describe(about);
        about.checks.extend(self.timeline.checks());
        about.checks.push(resolved_opens_check(self.opens));
    }
}

fn resolved_opens_check((opens, unresolved): (u64, u64)) -> Check {
    Check {
        name: "opens resolved".into(),
        passed: unresolved * 100 <= opens,
        detail: format!("{unresolved} of {opens} opens have no path, at most 1 % may"),
    }
}

/// A thread that decodes.
pub struct DecodingThread {
    bursts: Sender<DecoderMessage>,
    thread: JoinHandle<Result<RecordingDecoder, UserError>>,
    tid: i32,
}

enum DecoderMessage {
    Burst(Box<RawBurst>),
    /// No more bursts come, and all that wait are to be decoded.
    End,
}

impl DecodingThread {
    /// Starts the thread; dropping what this returns leaves the bursts that wait undecoded.
    ///
    /// # Errors
    /// If the system starts no thread.
    pub fn start(decoding: RecordingDecoder) -> Result<Self, UserError> {
        let (bursts, messages) = mpsc::channel();
        let started = machine::spawn_thread_with_id("tierwise-decoder", move || {
            machine::run_when_idle(0, true);
            decoding.decode_received(&messages)
        });
        let (thread, tid) = started.map_err(|error| {
            let fix = "end other programs, or raise the limits of threads and memory";
            UserError::new(format!("cannot start a thread: {error}"), fix)
        })?;
        Ok(Self {
            bursts,
            thread,
            tid,
        })
    }

    pub fn burst_ended(&self, burst: RawBurst) {
        // A thread that has failed is asked for its error at the end.
        let _ = self.bursts.send(DecoderMessage::Burst(Box::new(burst)));
    }

    /// Leaves the bursts that wait undecoded, and waits for the one that is being decoded.
    pub fn abandon(self) {
        drop(self.bursts);
        // Where no core is idle, the burst that is being decoded would take forever.
        machine::run_when_idle(self.tid, false);
        // A failure matters to nobody.
        let _ = self.thread.join();
    }

    /// Decodes the remaining bursts at full speed.
    pub fn finish(self) -> Result<RecordingDecoder, UserError> {
        let _ = self.bursts.send(DecoderMessage::End);
        machine::run_when_idle(self.tid, false);
        let ended = self.thread.join();
        ended.map_err(|_| UserError::new("the decoder ended", "report this"))?
    }
}
