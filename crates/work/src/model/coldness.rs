//! Processor time after an idle core has started.

use crate::constants::{COLD_NS, COLD_SHARE};

/// Factor of the processor time of a run that starts on a core which was idle for a time, over that of one which was
/// busy just before: 1 + s (1 − exp(−w / t)).
///
/// Models: caches, translations and branch predictors that others' work, or a hypervisor, took over meanwhile, and the
/// clock frequency of a core that slept. Assumption: in proportion to the run, whatever it does. Source:
/// docs/evidence/work-calibration.md#cold-cores.
#[must_use]
pub fn cold_factor(idle_ns: u64) -> f64 {
    1.0 + COLD_SHARE.get() * (1.0 - (-(idle_ns as f64) / COLD_NS.get()).exp())
}
