//! Read-ahead requests whose pages have not been used yet.

use crate::Step;

/// Largest number of requests kept.
const MOST: usize = 64;

/// First sectors of such requests, oldest first.
#[derive(Default)]
pub(super) struct UnreadRequests {
    sectors: Vec<u64>,
}

impl UnreadRequests {
    /// A request that begins at a sector was sent.
    pub(super) fn add(&mut self, sector: u64) {
        self.sectors.push(sector);
        let surplus = self.sectors.len().saturating_sub(MOST);
        self.sectors.drain(..surplus);
    }

    /// Whether a step is the first use of such a request. It may have to wait, so it is not merged with
    /// others.
    pub(super) fn is_first_use(&mut self, step: Step) -> bool {
        let Step::CachedRead {
            sector, sectors, ..
        } = step
        else {
            return false;
        };
        let range = sector..sector + u64::from(sectors);
        let before = self.sectors.len();
        self.sectors.retain(|start| !range.contains(start));
        self.sectors.len() < before
    }
}
