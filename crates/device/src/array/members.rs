//! The members of an array, each with its next event, its outstanding commands and its last position.

use super::ArrayParams;
use crate::array::ArrayMember;
use crate::random::GOLDEN_GAMMA;
use crate::virtual_time_driver::RESERVED;
use crate::{Completion, Device, Nanos, Op, Precondition, Request, WrittenSectors};

/// Devices that work at the same time.
pub(super) struct Members {
    devices: Vec<Box<dyn Device>>,
    next: TournamentTree,
    /// Commands that each has not completed.
    busy: Vec<u32>,
    /// End of the last command given to each.
    position: Vec<u64>,
    rotating: bool,
    done: Vec<Completion>,
    sectors_written: u64,
}

impl Members {
    /// Coupled members have the same seed, so that their platters stand alike at any time.
    pub(super) fn new<M: ArrayMember>(params: &ArrayParams<M>, seed: u64) -> Self {
        let members = params.members as usize;
        let seed_of = |member: u64| {
            if params.coupled {
                seed
            } else {
                seed ^ (member + 1).wrapping_mul(GOLDEN_GAMMA)
            }
        };
        Self {
            devices: (0..members as u64)
                .map(|member| params.member.build(seed_of(member)))
                .collect(),
            next: TournamentTree::new(members),
            busy: vec![0; members],
            position: vec![0; members],
            rotating: params.member.is_rotating(),
            done: Vec::with_capacity(RESERVED),
            sectors_written: 0,
        }
    }

    /// Gives a member a command of a task.
    pub(super) fn submit(&mut self, now: Nanos, member: usize, task: u32, request: Request) {
        self.busy[member] += 1;
        if request.op != Op::Flush {
            self.position[member] = request.sector + u64::from(request.sectors);
        }
        if request.op == Op::Write {
            self.sectors_written += u64::from(request.sectors);
        }
        let device = &mut self.devices[member];
        device.submit(now, u64::from(task), request);
        self.next.set(member, device.next_event());
    }

    /// Time of the earliest event of any member.
    pub(super) fn next_event(&self) -> Option<Nanos> {
        self.next.earliest()
    }

    /// Advances the first member that is due at `now`; its completions are then in [`Members::done`].
    pub(super) fn advance(&mut self, now: Nanos) {
        let member = self.next.first();
        let device = &mut self.devices[member];
        self.done.clear();
        device.advance(now, &mut self.done);
        self.busy[member] -= self.done.len() as u32;
        self.next.set(member, device.next_event());
    }

    /// How many commands the last [`Members::advance`] completed.
    pub(super) fn done(&self) -> usize {
        self.done.len()
    }

    /// The task of one of them.
    pub(super) fn task(&self, index: usize) -> u32 {
        self.done[index].id as u32
    }

    /// Chooses among the members that hold the same. Of rotating ones: the one whose last command ended where
    /// this read begins, so that it reads ahead. Else the one with the fewest commands; of those the one
    /// whose last command ended nearest; of those the first.
    pub(super) fn best_copy(
        &self,
        copies: std::ops::Range<usize>,
        missing: Option<usize>,
        sector: u64,
    ) -> usize {
        let first = copies.start;
        let distance = |member: usize| self.position[member].abs_diff(sector);
        let rank = |&member: &usize| {
            if self.rotating && distance(member) == 0 {
                (0, 0)
            } else {
                (self.busy[member] + 1, distance(member))
            }
        };
        copies
            .filter(|&member| missing != Some(member))
            .min_by_key(rank)
            .unwrap_or(first)
    }

    pub(super) fn precondition(&mut self, state: Precondition) {
        for device in &mut self.devices {
            device.precondition(state);
        }
    }

    pub(super) fn preload(&mut self, member: usize, request: &Request) {
        self.devices[member].preload(request);
    }

    /// Sectors written to the media: by the members' own count, or by the host's where they keep none.
    pub(super) fn written(&self) -> WrittenSectors {
        let reported = self
            .devices
            .iter()
            .fold(WrittenSectors::default(), |sum, device| {
                sum + device.written()
            });
        WrittenSectors {
            host_sectors: 0,
            medium_sectors: reported.medium_sectors
                + self.sectors_written.saturating_sub(reported.host_sectors),
            erases: reported.erases,
        }
    }
}

impl std::fmt::Debug for Members {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Members")
            .field("busy", &self.busy)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

// The earliest of many times that change often.

const NEVER: Nanos = Nanos::MAX;

/// A tree of minima over a fixed number of places: a change costs the height of the tree at most.
#[derive(Debug)]
pub(super) struct TournamentTree {
    /// Node `i` has the lesser of nodes `2i` and `2i + 1`; the second half are the places.
    least: Vec<Nanos>,
}

impl TournamentTree {
    pub(super) fn new(places: usize) -> Self {
        Self {
            least: vec![NEVER; 2 * places.next_power_of_two()],
        }
    }

    pub(super) fn set(&mut self, place: usize, at: Option<Nanos>) {
        let mut node = self.least.len() / 2 + place;
        self.least[node] = at.unwrap_or(NEVER);
        while node > 1 {
            node /= 2;
            let least = self.least[2 * node].min(self.least[2 * node + 1]);
            if self.least[node] == least {
                return;
            }
            self.least[node] = least;
        }
    }

    /// The earliest time, if there is any.
    pub(super) fn earliest(&self) -> Option<Nanos> {
        Some(self.least[1]).filter(|&at| at != NEVER)
    }

    /// The first place that has the earliest time.
    pub(super) fn first(&self) -> usize {
        let half = self.least.len() / 2;
        let mut node = 1;
        while node < half {
            node *= 2;
            node += usize::from(self.least[node] != self.least[1]);
        }
        node - half
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn finds_the_first_of_the_least(
            places in 1_usize..101,
            changes in prop::collection::vec((0_usize..100, prop::option::of(0_u64..50)), 1..200),
        ) {
            let mut times = vec![None; places];
            let mut tree = TournamentTree::new(places);
            for (place, at) in changes {
                times[place % places] = at;
                tree.set(place % places, at);
                let least = times.iter().flatten().min().copied();
                prop_assert_eq!(tree.earliest(), least);
                if least.is_some() {
                    prop_assert_eq!(Some(tree.first()), times.iter().position(|&at| at == least));
                }
            }
        }
    }
}
