//! The kernel's flusher: its writes under way and the sessions that wait for them. It sends nothing itself.

use std::collections::VecDeque;

use tierwise_recording::Role;

/// A write-back under way.
#[derive(Clone, Copy, Debug)]
struct Writing {
    job: u32,
    role: Role,
    sector: u64,
    sectors: u32,
}

/// Writes under way and waiting sessions.
#[derive(Debug, Default)]
pub(crate) struct Flusher {
    writing: Vec<Writing>,
    /// Jobs of write-backs and of the syncs that wait for them.
    awaited: Vec<(u32, u32)>,
    /// Sessions that wait to start more write-back.
    pub(crate) waiting_for_room: VecDeque<u32>,
    /// Writers blocked because too much is dirty.
    pub(crate) throttled: VecDeque<u32>,
}

impl Flusher {
    /// Number of a role's writes under way.
    pub(crate) fn under_way(&self, role: Role) -> u32 {
        let writing = self.writing.iter();
        writing.filter(|writing| writing.role == role).count() as u32
    }

    /// Adds a write.
    pub(crate) fn sent(&mut self, job: u32, role: Role, sector: u64, sectors: u32) {
        self.writing.push(Writing {
            job,
            role,
            sector,
            sectors,
        });
    }

    /// Removes a completed write; its sectors.
    pub(crate) fn done(&mut self, job: u32) -> Option<u32> {
        let at = self.writing.iter().position(|writing| writing.job == job)?;
        Some(self.writing.swap_remove(at).sectors)
    }

    /// Lets a sync wait for a role's writes under way between two sectors; their number.
    pub(crate) fn wait_for(&mut self, sync: u32, role: Role, (first, end): (u64, u64)) -> u32 {
        let before = self.awaited.len();
        let ours = self.writing.iter().filter(|writing| {
            let ends = writing.sector + u64::from(writing.sectors);
            writing.role == role && writing.sector < end && first < ends
        });
        self.awaited.extend(ours.map(|writing| (writing.job, sync)));
        (self.awaited.len() - before) as u32
    }

    /// Removes and returns a sync that waits for a completed write.
    pub(crate) fn next_waiting(&mut self, job: u32) -> Option<u32> {
        let at = self.awaited.iter().position(|waits| waits.0 == job)?;
        Some(self.awaited.swap_remove(at).1)
    }
}
