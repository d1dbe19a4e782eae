//! The state after long use, worked out once for all devices that are built of a profile or of its copies.

use std::sync::{Arc, OnceLock};

use super::flash::Flash;
use super::ftl::{CleaningParams, Ftl};

/// The map of a device whose whole space was overwritten at random, as soon as one was asked for.
#[derive(Clone, Debug, Default)]
pub struct Worn(Arc<OnceLock<Kept>>);

/// A map and what it follows from.
#[derive(Debug)]
struct Kept {
    flash: Flash,
    cleaning: CleaningParams,
    ftl: Ftl,
}

impl Worn {
    /// A copy of it, for a device of these parameters. One with others than the first that asked has its own map.
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

/// It follows from the parameters: those that differ in nothing else are equal.
impl PartialEq for Worn {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
