//! How I/Os are counted: large requests are split, requests in sequence are merged.

use super::params::CountParams;
use crate::{Nanos, Request};

/// The latest requests in sequence of one kind, reads or writes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Run {
    next_sector: u64,
    /// Sectors in the last I/O counted; it can take up more if it is not 0.
    filled_sectors: u64,
    /// Latest arrival that can still be merged.
    open_until: Nanos,
}

impl Run {
    /// I/Os that `request`, arriving at `now`, adds to those counted.
    #[inline]
    pub(super) fn count(&mut self, params: &CountParams, now: Nanos, request: &Request) -> u64 {
        if params.unit_sectors == 0 {
            return 1;
        }
        let follows = params.merge_window_ns.is_some()
            && request.sector == self.next_sector
            && now <= self.open_until;
        let begun = if follows { self.filled_sectors } else { 0 };
        let filled = begun + u64::from(request.sectors.max(1));
        self.filled_sectors = filled % params.unit_sectors;
        self.next_sector = request.sector + u64::from(request.sectors);
        filled.div_ceil(params.unit_sectors) - u64::from(begun > 0)
    }

    /// Notes when the request just counted completes.
    #[inline]
    pub(super) fn completes(&mut self, params: &CountParams, at: Nanos) {
        self.open_until = at + params.merge_window_ns.unwrap_or(0);
    }
}
