//! Decodes bursts into rows on disk, one after the other, and collects the recording's facts about them.

use std::collections::HashMap;
use std::path::Path;

use tierwise_recording::{About, Burst, Check, Losses, RecordingError, Rules, ThreadClass, Writer};

use crate::foreign_cpu::ForeignCpu;
use crate::host::processes::LiveThread;
use crate::timeline::{DeviceRange, FileFacts, Timeline};
use crate::tracer::{Decoder, RawBurst};

/// State that grows as bursts are decoded.
pub struct Decoding {
    timeline: Timeline,
    writer: Writer,
    rules: Rules,
    bursts: Vec<Burst>,
    losses: Losses,
    cpu: ForeignCpu,
    /// Files that were opened, and those among them whose path is not known.
    opens: (u64, u64),
}

impl Decoding {
    /// Of these devices; threads are told apart by these rules.
    pub fn new(devices: Vec<DeviceRange>, writer: Writer, rules: Rules) -> Self {
        Self {
            timeline: Timeline::new(devices),
            writer,
            rules,
            bursts: Vec::new(),
            losses: Losses::default(),
            cpu: ForeignCpu::default(),
            opens: (0, 0),
        }
    }

    /// Puts a burst's events on the timeline; gives their number.
    pub fn push(&mut self, raw: &RawBurst, decoder: &Decoder) -> u64 {
        for thread in &raw.threads {
            let class = self.class_of(thread, raw);
            self.timeline
                .see_thread(thread.pid, thread.tid, &thread.name, class);
        }
        raw.pids().for_each(|pid| self.timeline.forget_opens(pid));
        for file in &raw.files {
            self.timeline.see_open(file.pid, file.fd, &file.path);
        }
        let decoded = raw.decode(decoder, |event| self.timeline.push(&event));
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
        decoded.events
    }

    /// Asks for the facts of files that the burst showed, in the order of their paths.
    pub fn describe<E>(
        &mut self,
        resolve: impl FnOnce(Vec<String>) -> Result<Vec<FileFacts>, E>,
    ) -> Result<(), E> {
        let asked = self.timeline.paths_to_resolve();
        let (files, paths): (Vec<_>, Vec<_>) = asked.into_iter().unzip();
        for (file, facts) in files.into_iter().zip(resolve(paths)?) {
            self.timeline.describe_file(file, facts);
        }
        Ok(())
    }

    /// Writes the rows of the burst.
    pub fn write(&mut self, raw: &RawBurst) -> Result<(), RecordingError> {
        let rows = self.timeline.finish_burst();
        self.cpu.add(raw, &rows);
        self.writer.burst(rows)
    }

    /// Writes the recording so far to another directory; completes its description.
    pub fn snapshot(&mut self, about: &mut About, directory: &Path) -> Result<(), RecordingError> {
        self.complete(about);
        let threads = self.timeline.threads().to_vec();
        let files = self.timeline.files().to_vec();
        self.writer
            .snapshot(directory, about.clone(), threads, files)
    }

    /// Ends the recording; completes its description.
    pub fn finish(self, about: &mut About) -> Result<(), RecordingError> {
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
        about.checks.push(opens_check(self.opens));
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
            self.timeline.set_class(index as u32, class);
        }
    }

    fn class_of(&self, thread: &LiveThread, raw: &RawBurst) -> ThreadClass {
        if raw.clients.binary_search(&thread.tid).is_ok() {
            return ThreadClass::Client;
        }
        self.rules
            .class_of(&thread.process, &thread.command_line, &thread.name)
    }
}

fn opens_check((opens, unresolved): (u64, u64)) -> Check {
    Check {
        name: "opens resolved".into(),
        passed: unresolved * 100 <= opens,
        detail: format!("{unresolved} of {opens} opens have no path, at most 1 % may"),
    }
}
