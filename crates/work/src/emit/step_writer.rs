//! Writes the steps of one turn: sums processor time between them and inserts steps that no call shows.

use crate::page_cache::reuse_distances::ReuseDistances;
use crate::timeline::{ThreadSegment, ThreadSegmentKind};
use crate::transactions::sessions::ClientThreadTime;
use crate::{Delay, ReadReuse, Step};

/// Appends without a following commit are collected up to this size.
const APPEND_BYTES: f64 = 16_384.0;
/// Reads of neighbouring sectors are merged up to this length.
const LOOK_SECTORS: u32 = 256;
/// Largest number of read-ahead requests kept whose pages were not used yet.
const MOST_UNREAD: usize = 64;

/// Time on a core in calls that flush the log: until the last wait for its device, and after it.
///
/// The part after the wait runs on a core that was idle for as long as the device took, so it costs less on a faster
/// device. The part before does not. Calls that write the log without flushing it are counted apart too: a commit that
/// does not wait for the log still makes them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct FlushCpu {
    flushes: u32,
    before_ns: f64,
    after_ns: f64,
    /// Of both: in calls that do not flush.
    write_ns: f64,
    /// Of the flush under way: time after its latest wait.
    last: Option<f64>,
}

impl FlushCpu {
    /// A call of a commit: whether it flushed the log.
    pub(crate) fn count(&mut self, flush: bool) {
        self.flushes += u32::from(flush);
    }

    /// A stretch on a core in a call of a flush; `waited`: off any core just before, `writes`: the call does not flush.
    pub(crate) fn ran(&mut self, time_ns: f64, waited: bool, writes: bool) {
        if writes {
            self.write_ns += time_ns;
        }
        if waited {
            self.before_ns += self.last.replace(0.0).unwrap_or(0.0);
        }
        match &mut self.last {
            Some(last) => *last += time_ns,
            None => self.before_ns += time_ns,
        }
    }

    /// The flush has ended.
    pub(crate) fn settle(&mut self) {
        self.after_ns += self.last.take().unwrap_or(0.0);
    }

    /// Merges the flushes of another turn.
    pub(crate) fn add(&mut self, mut other: Self) {
        other.settle();
        self.flushes += other.flushes;
        self.before_ns += other.before_ns;
        self.after_ns += other.after_ns;
        self.write_ns += other.write_ns;
    }

    /// Mean of one flush: before its wait, after it, and in calls that only write.
    pub(crate) fn of_one(&self) -> [u32; 3] {
        [self.before_ns, self.after_ns, self.write_ns]
            .map(|ns| (ns / f64::from(self.flushes.max(1))) as u32)
    }
}

/// Writes the steps of one turn.
pub(crate) struct StepWriter<'a> {
    pub(super) steps: Vec<Step>,
    /// Time on a core since the last step.
    cpu_ns: u64,
    /// Own time on a core so far, as recorded.
    ran_ns: u64,
    /// Steps to insert at given own times on a core, last first.
    planned: Vec<(u64, Step)>,
    /// Signals and awaits with their instants, last first.
    marks: Vec<(u64, Step)>,
    /// Until this instant, time on a core belongs to the log's flush.
    strip_until_ns: u64,
    /// Whether that call of the flush only writes.
    strips_write: bool,
    /// Time on a core in the log's flushes.
    pub(super) stripped: FlushCpu,
    /// Until this instant, time is left out: the thread's work is no part of the turn.
    pub(super) left_out_until_ns: u64,
    /// Bytes appended to the log per nanosecond on a core, where commits are few.
    append_per_ns: f64,
    /// Bytes not yet appended.
    unwritten_bytes: f64,
    submitted: bool,
    /// First sectors of read-ahead requests whose pages have not been used yet, oldest first.
    unread: Vec<u64>,
    reuse_distances: &'a ReuseDistances,
    /// Instant and call of the request being written.
    asked: (u64, Option<u32>),
    /// Reuse of the latest reads.
    reuse: ReadReuse,
}

impl<'a> StepWriter<'a> {
    pub(super) fn new(
        reuse_distances: &'a ReuseDistances,
        append_per_ns: f64,
        marks: Vec<(u64, Step)>,
        mut planned: Vec<(u64, Step)>,
    ) -> Self {
        planned.sort_by_key(|(at_ns, _)| std::cmp::Reverse(*at_ns));
        Self {
            steps: Vec::new(),
            cpu_ns: 0,
            ran_ns: 0,
            planned,
            marks,
            strip_until_ns: 0,
            strips_write: false,
            stripped: FlushCpu::default(),
            left_out_until_ns: 0,
            append_per_ns,
            unwritten_bytes: 0.0,
            submitted: false,
            unread: Vec::new(),
            reuse_distances,
            asked: (0, None),
            reuse: ReadReuse::default(),
        }
    }

    /// The segment that requested the following steps.
    pub(super) fn asked(&mut self, segment: &ThreadSegment<'_>) {
        let row = match segment.kind {
            ThreadSegmentKind::Call { row, .. } => Some(row),
            _ => None,
        };
        self.asked = (segment.start_ns, row);
    }

    /// Runs from one instant to another; `waited`: off any core just before.
    pub(super) fn run(&mut self, mut from_ns: u64, to_ns: u64, mut waited: bool) {
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
        let marks = [
            planned,
            self.marks.last().map(|&(time_ns, _)| time_ns),
            Some(self.strip_until_ns),
            Some(self.left_out_until_ns),
        ];
        let inside = marks.into_iter().flatten();
        let inside = inside.filter(|&mark| mark > from_ns && mark < to_ns);
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
            self.stripped
                .ran(length_ns as f64, waited, self.strips_write);
        } else {
            self.cpu_ns += length_ns;
        }
    }

    /// Inserts due steps: signals and awaits by the time, hidden steps by the time on a core.
    fn insert_due(&mut self, now_ns: u64) {
        while let Some((_, step)) = self.marks.pop_if(|(time_ns, _)| *time_ns <= now_ns) {
            self.push(step);
        }
        let ran_ns = self.ran_ns;
        while let Some((_, step)) = self.planned.pop_if(|(at_ns, _)| *at_ns <= ran_ns) {
            self.push(step);
        }
    }

    /// A call of a flush until that instant; `writes`: it does not flush.
    pub(super) fn strip_until(&mut self, time_ns: u64, writes: bool) {
        self.strip_until_ns = self.strip_until_ns.max(time_ns);
        self.strips_write = writes;
    }

    pub(super) fn commit(&mut self, steps: Vec<Step>) {
        self.stripped.settle();
        self.extend(steps);
    }

    pub(super) fn client(&mut self, part: ClientThreadTime) {
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
    pub(super) fn drain(&mut self) {
        if std::mem::take(&mut self.submitted) {
            self.push(Step::Drain);
        }
    }

    pub(super) fn extend(&mut self, steps: impl IntoIterator<Item = Step>) {
        steps.into_iter().for_each(|step| self.push(step));
    }

    pub(super) fn push(&mut self, step: Step) {
        let reuse = self.reuse_distances.of(&step, self.asked.0, self.asked.1);
        if let Some(reuse) = reuse.filter(|reuse| *reuse != self.reuse) {
            self.reuse = reuse;
            self.steps.push(Step::Reuse(reuse));
        }
        if let Step::Submit { sector, write, .. } = step {
            self.submitted = true;
            if !write {
                self.unread.push(sector);
                let surplus = self.unread.len().saturating_sub(MOST_UNREAD);
                self.unread.drain(..surplus);
            }
        }
        if self.is_first_use(step) || !self.joins_last(step) {
            self.flush();
            self.steps.push(step);
        }
    }

    /// Whether a step is the first use of pages read ahead. It may have to wait, so it is not merged with others.
    fn is_first_use(&mut self, step: Step) -> bool {
        let Step::CachedRead {
            sector, sectors, ..
        } = step
        else {
            return false;
        };
        let range = sector..sector + u64::from(sectors);
        let before = self.unread.len();
        self.unread.retain(|start| !range.contains(start));
        self.unread.len() < before
    }

    /// Merges a step with the previous one if both read neighbouring sectors.
    fn joins_last(&mut self, step: Step) -> bool {
        let (
            Some(Step::CachedRead {
                role,
                sector,
                sectors,
            }),
            Step::CachedRead {
                role: next_role,
                sector: next,
                sectors: more,
            },
        ) = (self.steps.last_mut(), step)
        else {
            return false;
        };
        let follows = *role == next_role && *sector + u64::from(*sectors) == next;
        let joins = follows && *sectors + more <= LOOK_SECTORS;
        if joins {
            *sectors += more;
        }
        joins
    }

    pub(super) fn finish(mut self) -> Vec<Step> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_the_last_wait_and_what_only_writes_are_apart() {
        let mut cpu = FlushCpu::default();
        for _ in 0..2 {
            cpu.ran(10.0, false, true);
            cpu.ran(3.0, true, false);
            cpu.ran(4.0, true, false);
            cpu.ran(1.0, false, false);
            cpu.settle();
            cpu.count(true);
        }
        let mut all = FlushCpu::default();
        all.add(cpu);
        assert_eq!(all.of_one(), [13, 5, 10]);
    }
}
