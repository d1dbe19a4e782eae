//! Seek times by distance. They take longer to compute than all else of a disk, so the disks built from a
//! profile or from its copies share one table.

use std::sync::{Arc, OnceLock};

use crate::hdd::HddParams;

/// Seek times of a profile's disks, in nanoseconds, computed when the first disk is built.
#[derive(Clone, Debug, Default)]
pub(super) struct Seeks(Arc<OnceLock<Arc<[u32]>>>);

impl Seeks {
    /// Those of the parameters, which must be the profile's own.
    pub(super) fn of(&self, params: &HddParams) -> Arc<[u32]> {
        self.0.get_or_init(|| params.seek_ns()).clone()
    }
}

/// They follow from the parameters: profiles that differ in nothing else are equal.
impl PartialEq for Seeks {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
