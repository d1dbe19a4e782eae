//! The state after long use, worked out once for all devices that are built of a profile or of its copies.

use std::sync::{Arc, OnceLock};

use super::SsdParams;
use super::ftl::{CleaningParams, Ftl};

/// The map of a device whose whole space was overwritten at random, as soon as one was asked for.
#[derive(Clone, Debug, Default)]
pub struct Worn(Arc<OnceLock<Ftl>>);

impl Worn {
    /// A copy of it, for a device of these parameters, which must be the profile's own.
    pub(super) fn copy(&self, params: &SsdParams, cleaning: &CleaningParams) -> Ftl {
        let wear_in = || {
            let mut ftl = Ftl::new(params, cleaning);
            ftl.wear_in(1.0);
            ftl.shared()
        };
        self.0.get_or_init(wear_in).clone()
    }
}

/// It follows from the parameters: those that differ in nothing else are equal.
impl PartialEq for Worn {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
