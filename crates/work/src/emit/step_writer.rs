//! Writes the steps of one turn: sums processor time between them and inserts steps that no call shows.

use crate::emit::file_steps;
use crate::emit::unread_requests::UnreadRequests;
use crate::log::flush_cpu::FlushCpu;
use crate::page_cache::reuse_distances::ReuseDistances;
use crate::timeline::segments::{Segment, SegmentKind};
use crate::transactions::clients::ClientTime;
use crate::transactions::thread_dependencies::DependencyMark;
use crate::transactions::turn_meaning::Meaning;
use crate::{Delay, Reuse, Step};

/// Appends without a following commit are collected up to this size.
const APPEND_BYTES: f64 = 16_384.0;

/// Writes the steps of one turn.
pub(crate) struct StepWriter<'a> {
    steps: Vec<Step>,
    /// Time on a core since the last step.
    cpu_ns: u64,
    /// Own time on a core so far, as recorded.
    ran_ns: u64,
    /// Steps to insert at given own times on a core, last first.
    planned: Vec<(u64, Vec<Step>)>,
    /// Until this instant, time on a core belongs to the log's flush.
    strip_until_ns: u64,
    stripped: FlushCpu,
    /// Until this instant, time is left out.
    left_out_until_ns: u64,
    /// Signals and awaits of this turn with their times; the next first.
    marks: &'a [(u64, DependencyMark)],
    /// Bytes appended to the log per nanosecond on a core, where commits are few.
    append_per_ns: f64,
    /// Bytes not yet appended.
    unwritten_bytes: f64,
    submitted: bool,
    unread: UnreadRequests,
    reuse_distances: &'a ReuseDistances,
    /// Instant and call of the request being written.
    asked: (u64, Option<u32>),
    /// Reuse of the latest reads.
    reuse: Reuse,
}

impl<'a> StepWriter<'a> {
    pub(crate) fn new(
        marks: &'a [(u64, DependencyMark)],
        append_per_ns: f64,
        reuse_distances: &'a ReuseDistances,
    ) -> Self {
        Self {
            steps: Vec::new(),
            cpu_ns: 0,
            ran_ns: 0,
            planned: Vec::new(),
            strip_until_ns: 0,
            stripped: FlushCpu::default(),
            left_out_until_ns: 0,
            marks,
            append_per_ns,
            unwritten_bytes: 0.0,
            submitted: false,
            unread: UnreadRequests::default(),
            reuse_distances,
            asked: (0, None),
            reuse: Reuse::UNKNOWN,
        }
    }

    /// The segment that requested the following steps.
    pub(crate) fn asked(&mut self, segment: &Segment) {
        let call = match segment.kind {
            SegmentKind::Call { call } => Some(call),
            _ => None,
        };
        self.asked = (segment.start_ns, call);
    }

    /// Plans the steps that no call shows.
    pub(crate) fn plan(&mut self, meaning: &Meaning, append_bytes: Option<u32>) {
        for &(lock, at_ns) in &meaning.locks {
            self.planned.push((at_ns, vec![Step::Lock { lock }]));
        }
        if let Some(at_ns) = meaning.hidden_commit_ns {
            self.planned.push((at_ns, commit_steps(append_bytes)));
        }
        self.planned
            .sort_by_key(|(at_ns, _)| std::cmp::Reverse(*at_ns));
    }

    pub(crate) fn len(&mut self) -> usize {
        self.steps.len()
    }

    /// Runs from one instant to another; `waited`: off any core just before.
    pub(crate) fn run(&mut self, mut from_ns: u64, to_ns: u64, mut waited: bool) {
        loop {
            let end_ns = self.next_mark(from_ns, to_ns);
            self.gather(from_ns, end_ns, std::mem::take(&mut waited));
            self.insert_due(end_ns);
            if end_ns >= to_ns {
                return;
            }
            from_ns = end_ns;
        }
    }

    /// Where a CPU burst must be split next.
    fn next_mark(&self, from_ns: u64, to_ns: u64) -> u64 {
        let planned = self.planned.last();
        let planned = planned.map(|(at_ns, _)| from_ns + at_ns.saturating_sub(self.ran_ns));
        let mark = self.marks.first().map(|&(time_ns, _)| time_ns);
        let marks = [
            planned,
            mark,
            Some(self.strip_until_ns),
            Some(self.left_out_until_ns),
        ];
        let inside = marks
            .into_iter()
            .flatten()
            .filter(|&mark| mark > from_ns && mark < to_ns);
        inside.min().unwrap_or(to_ns)
    }

    fn gather(&mut self, from_ns: u64, to_ns: u64, waited: bool) {
        let length_ns = to_ns - from_ns;
        self.unwritten_bytes += length_ns as f64 * self.append_per_ns;
        if to_ns <= self.left_out_until_ns {
            return;
        }
        self.ran_ns += length_ns;
        if to_ns <= self.strip_until_ns {
            self.stripped.ran(length_ns as f64, waited);
        } else {
            self.cpu_ns += length_ns;
        }
    }

    /// Inserts due steps: signals and awaits by the time, hidden steps by the time on a core.
    fn insert_due(&mut self, now_ns: u64) {
        while let Some(&(_, mark)) = self.marks.first().filter(|mark| mark.0 <= now_ns) {
            self.push(match mark {
                DependencyMark::Signal(number) => Step::Signal { number },
                DependencyMark::Await(number) => Step::Await { number },
            });
            self.marks = &self.marks[1..];
        }
        while self
            .planned
            .last()
            .is_some_and(|(at_ns, _)| *at_ns <= self.ran_ns)
        {
            if let Some((_, steps)) = self.planned.pop() {
                steps.into_iter().for_each(|step| self.push(step));
            }
        }
    }

    /// Until this instant, the thread's work is no part of the turn.
    pub(crate) fn leave_out_until(&mut self, time_ns: u64) {
        self.left_out_until_ns = time_ns;
    }

    pub(crate) fn strip_until(&mut self, time_ns: u64) {
        self.strip_until_ns = self.strip_until_ns.max(time_ns);
    }

    pub(crate) fn commit(&mut self, steps: Vec<Step>) {
        self.stripped.settle();
        self.extend(steps);
    }

    pub(crate) fn client(&mut self, part: ClientTime) {
        self.flush();
        self.steps.extend(Step::cpu(part.cpu_ns, true));
        if part.away_ns > 0 {
            self.steps.push(Step::Delay(Delay {
                time_ns: part.away_ns,
                timer: false,
            }));
        }
    }

    /// Waits for submitted requests, if there are any.
    pub(crate) fn drain(&mut self) {
        if std::mem::take(&mut self.submitted) {
            self.push(Step::Drain);
        }
    }

    pub(crate) fn extend(&mut self, steps: Vec<Step>) {
        steps.into_iter().for_each(|step| self.push(step));
    }

    pub(crate) fn push(&mut self, step: Step) {
        let reuse = self.reuse_distances.of(&step, self.asked.0, self.asked.1);
        if let Some(reuse) = reuse.filter(|reuse| *reuse != self.reuse) {
            self.reuse = reuse;
            self.steps.push(Step::Reuse(reuse));
        }
        if let Step::Submit { sector, write, .. } = step {
            self.submitted = true;
            if !write {
                self.unread.add(sector);
            }
        }
        if self.unread.is_first_use(step) {
            self.flush();
            self.steps.push(step);
        } else if let Some(step) = file_steps::join_looks(self.steps.last_mut(), step) {
            self.flush();
            self.steps.push(step);
        }
    }

    /// Time on a core in the log's flushes.
    pub(crate) fn stripped(&self) -> FlushCpu {
        self.stripped
    }

    pub(crate) fn finish(mut self) -> Vec<Step> {
        self.ran_ns = u64::MAX;
        self.insert_due(u64::MAX);
        self.flush();
        self.append(1.0);
        self.steps
    }

    fn flush(&mut self) {
        let cpu_ns = std::mem::take(&mut self.cpu_ns);
        self.steps.extend(Step::cpu(cpu_ns, false));
        self.append(APPEND_BYTES);
    }

    /// Appends the collected bytes, if there are at least this many.
    fn append(&mut self, least_bytes: f64) {
        if self.unwritten_bytes >= least_bytes {
            let size_bytes = std::mem::take(&mut self.unwritten_bytes) as u32;
            self.steps.push(Step::Append { size_bytes });
        }
    }
}

pub(crate) fn commit_steps(append_bytes: Option<u32>) -> Vec<Step> {
    let append = append_bytes.map(|size_bytes| Step::Append { size_bytes });
    append.into_iter().chain([Step::Commit]).collect()
}
