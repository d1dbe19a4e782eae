//! The state after long use, computed once for all devices built from a profile or from its copies.

use std::sync::{Arc, OnceLock};

use super::flash::Flash;
use super::ftl::{CleaningParams, Ftl};

/// The map of a device whose whole space was overwritten at random, computed at the first request for it.
#[derive(Clone, Debug, Default)]
pub struct Worn(Arc<OnceLock<Kept>>);

/// A map and the parameters that determine it.
#[derive(Debug)]
struct Kept {
    flash: Flash,
    cleaning: CleaningParams,
    ftl: Ftl,
}

impl Worn {
    /// A copy of it, for a device of these parameters. Parameters other than the first device's get their own
    /// map.
    pub(super) fn copy(&self, flash: &Flash, cleaning: &CleaningParams) -> Ftl {
        let wear_in = || {
            let mut ftl = Ftl::new(flash, cleaning);
            ftl.wear_in(1.0);
            ftl.shared()
        };
        let kept = self.0.get_or_init(|| Kept {
            flash: *flash,
            cleaning: cleaning.clone(),
            ftl: wear_in(),
        });
        if kept.flash == *flash && kept.cleaning == *cleaning {
            kept.ftl.clone()
        } else {
            wear_in()
        }
    }
}

/// The parameters determine it: those that differ in nothing else are equal.
impl PartialEq for Worn {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
