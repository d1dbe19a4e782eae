//! A failed member and the filling of its replacement beside the host's work.

use super::model::{Array, Event, Owner};
use super::params::RebuildParams;
use crate::{Nanos, Op};

/// Sectors that one step of rebuilding copies: 1 MiB.
const STEP_SECTORS: u64 = 2048;

/// Which member does not hold its data.
#[derive(Clone, Debug)]
pub(super) struct Health {
    failed: Option<usize>,
    /// Whether there is a replacement in its place.
    replaced: bool,
    /// Up to where the replacement holds data, in sectors.
    rebuilt: u64,
}

impl Health {
    /// The first member failed, if one has: which one makes no difference to the times of the whole.
    pub(super) fn new(degraded: bool, replaced: bool) -> Self {
        Self {
            failed: degraded.then_some(0),
            replaced,
            rebuilt: 0,
        }
    }

    /// As [`Health::new`] for any member, without a replacement.
    #[cfg(test)]
    pub(super) fn of(failed: Option<usize>) -> Self {
        Self {
            failed,
            ..Self::new(false, false)
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.failed.is_none()
    }

    /// The member that lacks data somewhere below `end`, a sector of members.
    pub(super) fn missing_below(&self, end: u64) -> Option<usize> {
        self.failed.filter(|_| end > self.rebuilt)
    }

    /// The member that takes no writes at `start` and behind.
    pub(super) fn missing_from(&self, start: u64) -> Option<usize> {
        self.failed.filter(|_| start >= self.rebuilt)
    }

    /// The place where there is no member at all.
    pub(super) fn absent(&self) -> Option<usize> {
        self.failed.filter(|_| !self.replaced)
    }
}

/// A rebuild under way: while one step is written to the replacement, the next is read.
#[derive(Clone, Debug)]
pub(super) struct Rebuild {
    step_ns_idle: f64,
    step_ns_busy: f64,
    begun: bool,
    /// Where the next step begins.
    next: u64,
    /// When the present step began.
    step_began: Nanos,
    /// Whether the host wanted something since then.
    host_came: bool,
    /// Steps that are being written.
    writing: u32,
    /// Whether the next step waits for one of them.
    waits: bool,
}

impl Rebuild {
    pub(super) fn new(params: &RebuildParams) -> Self {
        let step_ns = STEP_SECTORS as f64 * params.sector_ns;
        Self {
            step_ns_idle: step_ns,
            step_ns_busy: step_ns / params.priority,
            begun: false,
            next: 0,
            step_began: 0,
            host_came: false,
            writing: 0,
            waits: false,
        }
    }

    /// When the rate allows the next step.
    fn next_step(&self, busy: bool) -> Nanos {
        let step_ns = if busy || self.host_came {
            self.step_ns_busy
        } else {
            self.step_ns_idle
        };
        self.step_began + step_ns as Nanos
    }
}

impl Array {
    /// Rebuilding begins with the first request, since before it time has no meaning.
    pub(super) fn host_comes(&mut self, now: Nanos) {
        if let Some(rebuild) = &mut self.rebuild {
            rebuild.host_came = true;
            if !rebuild.begun {
                rebuild.begun = true;
                self.agenda.push(now, Event::Rebuild);
            }
        }
    }

    /// Reads what the next step needs.
    pub(super) fn rebuild_step(&mut self, now: Nanos) {
        let (Some(rebuild), Some(failed)) = (&mut self.rebuild, self.health.failed) else {
            return;
        };
        rebuild.step_began = now;
        rebuild.host_came = self.hosts.len() > 0;
        let start = rebuild.next;
        rebuild.next = (start + STEP_SECTORS).min(self.layout.member_sectors());
        self.extents.clear();
        if self.layout.copies() > 1 {
            let lane = failed / self.layout.copies();
            self.extents.add(lane, start, rebuild.next);
        } else {
            (0..self.layout.members())
                .filter(|&member| member != failed)
                .for_each(|member| self.extents.add(member, start, rebuild.next));
        }
        let task = self.open_task(Owner::Rebuild, start);
        self.tasks[task].writes_follow = true;
        self.send_reads(now, task);
    }

    /// Writes to the replacement what was worked out from the rest.
    pub(super) fn rebuild_write(&mut self, now: Nanos, task: u32) {
        let start = self.tasks[task].row;
        let end = (start + STEP_SECTORS).min(self.layout.member_sectors());
        if let (Some(rebuild), Some(failed)) = (&mut self.rebuild, self.health.failed) {
            rebuild.writing += 1;
            rebuild.waits = rebuild.writing > 1;
            self.send(now, task, failed, Op::Write, start..end, false);
        }
        self.rebuild_on(now);
    }

    /// Ends a step that began at `start`.
    pub(super) fn rebuild_written(&mut self, now: Nanos, start: u64) {
        let sectors = self.layout.member_sectors();
        self.health.rebuilt = (start + STEP_SECTORS).min(sectors);
        if self.health.rebuilt == sectors {
            self.health.failed = None;
            self.rebuild = None;
        } else if let Some(rebuild) = &mut self.rebuild {
            rebuild.writing -= 1;
            if std::mem::take(&mut rebuild.waits) {
                self.rebuild_on(now);
            }
        }
    }

    /// Lets the next step begin when the rate allows it, unless it waits for a write.
    fn rebuild_on(&mut self, now: Nanos) {
        let busy = self.hosts.len() > 0;
        if let Some(rebuild) = &self.rebuild
            && !rebuild.waits
            && rebuild.next < self.layout.member_sectors()
        {
            let next = now.max(rebuild.next_step(busy));
            self.agenda.push(next, Event::Rebuild);
        }
    }
}
