//! Cold caches of a core that was idle, and the processor time of warming them up.
//!
//! An idle core of a virtual machine is given to other machines, and its caches lose what they held. Lost lines are
//! fetched again when they are used: the first bursts after a long pause pay, whichever thread runs them.
//!
//! Source of the curve: eleven cases on PostgreSQL, MariaDB and SQLite, each recorded with everything on an
//! SSD and on a 7,200 rpm disk (docs/evidence/work-calibration.md). Source of the usual cost, 250 µs: pgbench
//! on PostgreSQL 15, 4 and 16 clients, on the same two devices, 2 cores of an EPYC. The cost of a recording's
//! own engine is learned: `transactions/coldness_cost.rs`.

use crate::constants::{
    WARMUP_CLIENT_SHARE, WARMUP_COLD_NS, WARMUP_COLDEST_NS, WARMUP_SCALE_NS, WARMUP_WARM_NS,
};

/// Cost of cold caches. A core that has been idle for `w` has the coldness `ln(1 + w / scale) / ln(1 +
/// coldest / scale)`, at most 1, at least the rest of its previous coldness. A burst that takes `t` on a warm
/// core costs `cold × coldness × (1 − exp(−t / warm))` extra, and coldness falls by the same share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmupCost {
    /// Cost of a core of coldness 1 until it is warm, in nanoseconds; learned from the recording where
    /// possible.
    pub cold_ns: f64,
    /// Time on a core in which coldness falls to 1/e, in nanoseconds.
    pub warm_ns: f64,
    /// Waits much shorter than this cost nothing, in nanoseconds.
    pub scale_ns: f64,
    /// `ln(1 + w / scale)` of the wait from which on coldness is 1.
    pub coldest_rise: f64,
    /// Largest coldness of a client's thread; that of a server's thread is 1.
    pub client_share: f64,
}

/// Measured values; see above.
impl Default for WarmupCost {
    fn default() -> Self {
        Self {
            cold_ns: WARMUP_COLD_NS.get(),
            warm_ns: WARMUP_WARM_NS.get(),
            scale_ns: WARMUP_SCALE_NS.get(),
            coldest_rise: (WARMUP_COLDEST_NS.get() / WARMUP_SCALE_NS.get()).ln_1p(),
            client_share: WARMUP_CLIENT_SHARE.get(),
        }
    }
}

/// Newton steps of the search for the warm time; it converges from one side.
const STEPS: usize = 6;

impl WarmupCost {
    /// Coldness of a core that was `cold` and has been idle since.
    #[must_use]
    pub fn after_idle(&self, cold: f64, idle_ns: u64) -> f64 {
        let rise = (idle_ns as f64 / self.scale_ns).ln_1p() / self.coldest_rise;
        rise.min(1.0).max(cold)
    }

    /// The share of a core's coldness that a server's or a client's thread pays.
    #[must_use]
    pub fn share(&self, client: bool) -> f64 {
        if client { self.client_share } else { 1.0 }
    }

    /// Time of a burst that takes a warm thread `warm_ns`, started at coldness `cold`; and the coldness after it.
    #[must_use]
    pub fn run(&self, warm_ns: f64, cold: f64) -> (f64, f64) {
        let left = (-warm_ns / self.warm_ns).exp();
        (warm_ns + self.cold_ns * cold * (1.0 - left), cold * left)
    }

    /// The inverse of [`Self::run`]: the warm time of a burst that took `took_ns`, and the coldness after it.
    #[must_use]
    pub fn warm(&self, took_ns: f64, cold: f64) -> (f64, f64) {
        let steepest = 1.0 + self.cold_ns * cold / self.warm_ns;
        let mut warm_ns = (took_ns - self.cold_ns * cold).max(took_ns / steepest);
        for _ in 0..STEPS {
            let (gives_ns, left) = self.run(warm_ns, cold);
            warm_ns += (took_ns - gives_ns) / (1.0 + self.cold_ns * left / self.warm_ns);
        }
        (warm_ns, self.run(warm_ns, cold).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_coldness_cost_is_found_again() {
        let cost = WarmupCost::default();
        for cold in [0.0, 0.1, 0.5, 1.0] {
            for warm_ns in [100.0, 5_000.0, 60_000.0, 1e6, 1e9] {
                let (took_ns, left) = cost.run(warm_ns, cold);
                let (found_ns, found_left) = cost.warm(took_ns, cold);
                assert!(
                    (found_ns / warm_ns - 1.0).abs() < 0.01,
                    "{found_ns} for {warm_ns}"
                );
                assert!((found_left - left).abs() < 0.01);
            }
        }
    }

    #[test]
    fn a_stretch_costs_the_same_in_one_piece_and_in_several() {
        let cost = WarmupCost::default();
        let whole = cost.run(90_000.0, 0.8);
        let parts = (0..3).fold((0.0, 0.8), |(sum, cold), _| {
            let (took_ns, left) = cost.run(30_000.0, cold);
            (sum + took_ns, left)
        });
        assert!((whole.0 - parts.0).abs() < 1e-6 && (whole.1 - parts.1).abs() < 1e-9);
    }

    #[test]
    fn longer_waits_are_never_cheaper() {
        let cost = WarmupCost::default();
        let costs = [0, 1_000, 20_000, 1_000_000, 8_000_000, u64::MAX]
            .map(|wait_ns| cost.run(50_000.0, cost.after_idle(0.0, wait_ns)).0);
        assert!(costs.windows(2).all(|two| two[0] <= two[1]), "{costs:?}");
        assert!((costs[0] - 50_000.0).abs() < 1e-6);
        assert!(cost.after_idle(0.7, 1_000) >= 0.7);
    }
}
