//! Cold caches after a wait, and the processor time of warming them up.
//!
//! While a thread is off its core others use its caches, and an idle core of a virtual machine is given to other
//! machines. Lost lines are fetched again when they are used. So the first CPU bursts after a long wait pay, not only
//! the next one, and a long burst pays once.
//!
//! Source: twelve cases of order entry, crud, simple objects, spill join and index update on PostgreSQL, MariaDB and
//! SQLite, each recorded with everything on an SSD and on a 7,200 rpm disk, on a quiet machine: the same bursts between
//! the same calls, after different waits. After 8 ms sessions ran 1.6 to 3.4 times as long. Cost in µs per wait on the
//! SSD, and on top of it on the disk: 42 and 110, 85 and 160, 117 and 182, 171 and 290, 216 and 320, 1,100 and 490. The
//! cost of waits in between is from the processor time of engines on other devices, measured without recording: of what
//! 7.5 ms cost beyond an SSD's waits, 0.8 ms cost 0.1 to 0.4 in nine cases, 1.4 ms 0.2 to 0.5, 5 ms 0.75 to 1. The
//! constants minimise the error of predictions for all these devices. 500 µs is the order of refilling a second-level
//! cache of 1 MiB at 30 ns per line. The clients' programs, loops over small memory, lost a tenth of that. docs/work.md
//! lists the errors.

/// Cost of warming up caches. CacheWarmup after a wait `w` is `ln(1 + w / scale) / ln(1 + coldest / scale)`, at most 1,
/// at least what is left of the coldness before. A burst that takes a warm thread `t` costs `cold × coldness × (1 −
/// exp(−t / warm))` on top, and coldness falls by the same share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmupCost {
    /// What a thread of coldness 1 pays until it is warm, in nanoseconds.
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

/// As measured; see above.
const SCALE_NS: f64 = 2_000_000.0;
const COLDEST_NS: f64 = 8_000_000.0;

/// As measured; see above.
impl Default for WarmupCost {
    fn default() -> Self {
        Self {
            cold_ns: 500_000.0,
            warm_ns: 200_000.0,
            scale_ns: SCALE_NS,
            coldest_rise: (COLDEST_NS / SCALE_NS).ln_1p(),
            client_share: 0.1,
        }
    }
}

/// Newton steps of the search for the warm time; it converges from one side.
const STEPS: usize = 6;

impl WarmupCost {
    /// CacheWarmup of a client's or server's thread after a wait, if it was `cold` before.
    #[must_use]
    pub fn after_wait(&self, client: bool, cold: f64, wait_ns: u64) -> f64 {
        if wait_ns == 0 {
            return cold;
        }
        let rise = (wait_ns as f64 / self.scale_ns).ln_1p() / self.coldest_rise;
        let share = if client { self.client_share } else { 1.0 };
        (share * rise.min(1.0)).max(cold)
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

/// CacheWarmup of a session's two threads, the server's and the client's, while its recorded steps are read in order.
#[derive(Clone, Copy, Debug, Default)]
pub struct CacheWarmup([f64; 2]);

impl CacheWarmup {
    /// A recorded burst after a wait: the coldness at its begin, and its warm time in nanoseconds.
    pub fn pass(
        &mut self,
        cost: &WarmupCost,
        client: bool,
        took_ns: f64,
        wait_ns: u64,
    ) -> (f64, f64) {
        let thread = &mut self.0[usize::from(client)];
        let cold = cost.after_wait(client, *thread, wait_ns);
        let (warm_ns, left) = cost.warm(took_ns, cold);
        *thread = left;
        (cold, warm_ns)
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
            .map(|wait_ns| cost.run(50_000.0, cost.after_wait(false, 0.0, wait_ns)).0);
        assert!(costs.windows(2).all(|two| two[0] <= two[1]), "{costs:?}");
        assert!((costs[0] - 50_000.0).abs() < 1e-6);
        assert!(cost.after_wait(false, 0.7, 1_000) >= 0.7);
        assert!(cost.after_wait(true, 0.0, 1_000_000) < cost.after_wait(false, 0.0, 1_000_000));
    }
}
