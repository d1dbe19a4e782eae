//! Seek times by distance, which take longer to work out than all else of a disk: once for all that are built of a
//! profile or of its copies.

use std::sync::{Arc, OnceLock};

use crate::hdd::HddParams;

/// Seek times of a profile's disks, in nanoseconds, as soon as one was built.
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
