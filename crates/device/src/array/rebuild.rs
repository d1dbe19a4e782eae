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

/// A rebuild under way.
#[derive(Clone, Debug)]
pub(super) struct Rebuild {
    step_ns_idle: f64,
    step_ns_busy: f64,
    begun: bool,
    /// When the present step began.
    step_began: Nanos,
    /// Whether the host wanted something since then.
    host_came: bool,
}

impl Rebuild {
    pub(super) fn new(params: &RebuildParams) -> Self {
        let step_ns = STEP_SECTORS as f64 * params.sector_ns;
        Self {
            step_ns_idle: step_ns,
            step_ns_busy: step_ns / params.priority,
            begun: false,
            step_began: 0,
            host_came: false,
        }
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
        let Some(rebuild) = &mut self.rebuild else {
            return;
        };
        rebuild.step_began = now;
        rebuild.host_came = self.hosts.len() > 0;
        let (start, end) = self.rebuild_range();
        let failed = self.health.failed.unwrap_or(0);
        self.extents.clear();
        if self.layout.copies() > 1 {
            self.extents.add(0, start, end);
        } else {
            (0..self.layout.members())
                .filter(|&member| member != failed)
                .for_each(|member| self.extents.add(member, start, end));
        }
        let task = self.open_task(Owner::Rebuild, 0);
        self.tasks[task].writes_follow = true;
        self.send_reads(now, task);
    }

    /// Writes to the replacement what was worked out from the rest.
    pub(super) fn rebuild_write(&mut self, now: Nanos, task: u32) {
        let (start, end) = self.rebuild_range();
        let failed = self.health.failed.unwrap_or(0);
        self.send(now, task, failed, Op::Write, start..end, false);
    }

    /// Ends a step; the next begins when the rate allows it.
    pub(super) fn rebuild_written(&mut self, now: Nanos) {
        self.health.rebuilt = self.rebuild_range().1;
        if self.health.rebuilt == self.layout.member_sectors() {
            self.health.failed = None;
            self.rebuild = None;
        } else if let Some(rebuild) = &self.rebuild {
            let busy = rebuild.host_came || self.hosts.len() > 0;
            let step_ns = if busy {
                rebuild.step_ns_busy
            } else {
                rebuild.step_ns_idle
            };
            let next = now.max(rebuild.step_began + step_ns as Nanos);
            self.agenda.push(next, Event::Rebuild);
        }
    }

    fn rebuild_range(&self) -> (u64, u64) {
        let start = self.health.rebuilt;
        (
            start,
            (start + STEP_SECTORS).min(self.layout.member_sectors()),
        )
    }
}
