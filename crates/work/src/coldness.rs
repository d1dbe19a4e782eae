//! How cold a thread's core is after a wait, and what that costs.
//!
//! While a thread is off its core others use its caches, and an idle core of a virtual machine is given to other
//! machines. What is lost is fetched again as it comes to be used: so it is paid for by the first stretches after
//! a long wait, not by the next one alone, and a long stretch pays it only once.
//!
//! Source: twelve cases of order entry, crud, simple objects, spill join and index update on PostgreSQL, MariaDB and
//! SQLite, each recorded with everything on an SSD and on a 7,200 rpm disk, on a quiet machine: the same stretches
//! between the same calls, after other waits. After 8 ms sessions ran 1.6 to 3.4 times as long; in µs a wait, on the
//! SSD and more on the disk: 42 and 110, 85 and 160, 117 and 182, 171 and 290, 216 and 320, 1,100 and 490. What waits
//! between those cost is from the processor time of engines on other devices, measured without recording: of what
//! 7.5 ms cost more than an SSD's waits, 0.8 ms cost 0.1 to 0.4 in nine cases, 1.4 ms 0.2 to 0.5, 5 ms 0.75 to 1. The
//! figures are those with the least error over predictions for all these devices. 500 µs are the order of a
//! second-level cache of 1 MiB filled anew, at 30 ns a line. The clients' programs, loops over small memory, lost a
//! tenth of that. docs/work.md has the errors.

/// What coldness costs. A thread that has been off its core for `w` is cold by
/// `ln(1 + w / scale) / ln(1 + coldest / scale)`, at most by 1, or by what is left of its coldness before. Running
/// for `t`, which would take a warm thread so long, it pays `cold × coldness × (1 − exp(−t / warm))` on top, and
/// its coldness falls by the same share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuCost {
    /// What a thread pays that is wholly cold, until it is warm.
    pub cold_ns: f64,
    /// Time in which coldness falls to 1/e.
    pub warm_ns: f64,
    /// Waits that are short beside it cost nothing.
    pub scale_ns: f64,
    /// What `ln(1 + w / scale)` is for the coldest of waits: longer ones cost no more.
    pub coldest_rise: f64,
    /// How cold a client's thread gets, a server's being 1.
    pub client_share: f64,
}

/// As measured; see above.
const SCALE_NS: f64 = 2_000_000.0;
const COLDEST_NS: f64 = 8_000_000.0;

/// As measured; see above.
impl Default for CpuCost {
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

/// Steps in which the time without coldness is looked for; the search comes nearer from one side.
const STEPS: usize = 6;

impl CpuCost {
    /// How cold a thread, a client's or a server's, is that was so cold, and has been off its core for so long since.
    #[must_use]
    pub fn after_wait(&self, client: bool, cold: f64, wait_ns: u64) -> f64 {
        if wait_ns == 0 {
            return cold;
        }
        let rise = (wait_ns as f64 / self.scale_ns).ln_1p() / self.coldest_rise;
        let share = if client { self.client_share } else { 1.0 };
        (share * rise.min(1.0)).max(cold)
    }

    /// What a stretch takes a thread that is so cold, if it would take so long a warm one; and how cold it is then.
    #[must_use]
    pub fn run(&self, warm_ns: f64, cold: f64) -> (f64, f64) {
        let left = (-warm_ns / self.warm_ns).exp();
        (warm_ns + self.cold_ns * cold * (1.0 - left), cold * left)
    }

    /// What a stretch would have taken a warm thread that took so long one that was so cold; and how cold it was then.
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

/// How cold the threads of a session are, as its recorded steps follow each other: the server's and the client's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coldness([f64; 2]);

impl Coldness {
    /// A recorded stretch, after that long off the core: how cold its thread was, and what it would have taken a
    /// warm one.
    pub fn pass(&mut self, cost: &CpuCost, client: bool, took_ns: f64, wait_ns: u64) -> (f64, f64) {
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
        let cost = CpuCost::default();
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
        let cost = CpuCost::default();
        let whole = cost.run(90_000.0, 0.8);
        let parts = (0..3).fold((0.0, 0.8), |(sum, cold), _| {
            let (took_ns, left) = cost.run(30_000.0, cold);
            (sum + took_ns, left)
        });
        assert!((whole.0 - parts.0).abs() < 1e-6 && (whole.1 - parts.1).abs() < 1e-9);
    }

    #[test]
    fn longer_waits_are_never_cheaper() {
        let cost = CpuCost::default();
        let costs = [0, 1_000, 20_000, 1_000_000, 8_000_000, u64::MAX]
            .map(|wait_ns| cost.run(50_000.0, cost.after_wait(false, 0.0, wait_ns)).0);
        assert!(costs.windows(2).all(|two| two[0] <= two[1]), "{costs:?}");
        assert!((costs[0] - 50_000.0).abs() < 1e-6);
        assert!(cost.after_wait(false, 0.7, 1_000) >= 0.7);
        assert!(cost.after_wait(true, 0.0, 1_000_000) < cost.after_wait(false, 0.0, 1_000_000));
    }
}
