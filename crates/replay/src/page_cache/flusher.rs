//! The kernel's flusher: its writes under way, and who waits for them. Sends nothing itself.

use std::collections::VecDeque;

use tierwise_recording::Role;

/// A write of the kernel's own accord under way.
#[derive(Clone, Copy, Debug)]
struct Writing {
    job: u32,
    role: Role,
    sector: u64,
    sectors: u32,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Flusher {
    writing: Vec<Writing>,
    /// A write's job, and that of a sync that waits for it.
    awaited: Vec<(u32, u32)>,
    /// Sessions that have more to give to the device.
    pub(crate) waiting_for_room: VecDeque<u32>,
    /// Writers that are held back because too much is dirty.
    pub(crate) throttled: VecDeque<u32>,
}

impl Flusher {
    /// Writes of a role under way.
    pub(crate) fn under_way(&self, role: Role) -> u32 {
        let writing = self.writing.iter();
        writing.filter(|writing| writing.role == role).count() as u32
    }

    /// A write was sent.
    pub(crate) fn sent(&mut self, job: u32, role: Role, sector: u64, sectors: u32) {
        self.writing.push(Writing {
            job,
            role,
            sector,
            sectors,
        });
    }

    /// A write is done: how many sectors it was.
    pub(crate) fn done(&mut self, job: u32) -> Option<u32> {
        let at = self.writing.iter().position(|writing| writing.job == job)?;
        Some(self.writing.swap_remove(at).sectors)
    }

    /// Lets a sync wait for the writes of a role under way between two sectors; how many.
    pub(crate) fn wait_for(&mut self, sync: u32, role: Role, (first, end): (u64, u64)) -> u32 {
        let before = self.awaited.len();
        let ours = self.writing.iter().filter(|writing| {
            let ends = writing.sector + u64::from(writing.sectors);
            writing.role == role && writing.sector < end && first < ends
        });
        self.awaited.extend(ours.map(|writing| (writing.job, sync)));
        (self.awaited.len() - before) as u32
    }

    /// A sync that waits for a write that is done, no longer from now on.
    pub(crate) fn next_waiting(&mut self, job: u32) -> Option<u32> {
        let at = self.awaited.iter().position(|waits| waits.0 == job)?;
        Some(self.awaited.swap_remove(at).1)
    }
}
