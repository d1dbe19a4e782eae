//! Processor cost of a request outside its sender, by its length and the time since the previous one.

use crate::constants::{
    IDLE_REQUEST_MOST_FACTOR, QUICK_REQUEST_NS, REQUEST_LEAST_FACTOR, REQUEST_MOST_FACTOR,
    REQUESTS_APART_NS, SMALL_REQUEST_KIB,
};

/// Processor time of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestCost {
    /// Independent of length, a tenth of a millisecond after the previous one.
    pub request_ns: f64,
    /// Per KiB of length.
    pub kib_ns: f64,
    /// Extra cost per unit of the idle-time factor above one; see `idle_factor`.
    pub idle_ns: f64,
}

/// How much more a request costs the later it follows the previous one on its device: threads and caches are
/// cold. Measured on a quiet machine, the kernel's threads under order entry: 34 µs for requests 0.1 ms
/// apart, 45 for 0.18, 56 for 0.39, 105 to 120 for 4.2 ms: the cube root.
fn idle_factor(apart_ns: u64) -> f64 {
    (apart_ns as f64 / REQUESTS_APART_NS.get())
        .cbrt()
        .clamp(REQUEST_LEAST_FACTOR.get(), REQUEST_MOST_FACTOR.get())
}

/// How much longer a write or a flush takes on the path the later it follows the previous request. Measured
/// on emulated disks that answer at once, under order entry by one client: 37 µs for writes less than 0.2 ms
/// after it, 41 below 0.4, 39 below 0.8, 42 below 1.5, 53 below 3, 74 below 6. Flushes of a disk 8 ms after
/// it took 2.5, 2.5, 2.7 and 3.6 times as long as those of an SSD 0.1 ms after it (four workloads): the cube
/// root. Side by side they cost, and take, half.
pub(crate) fn path_factor(apart_ns: u64) -> f64 {
    let late = (apart_ns as f64 / QUICK_REQUEST_NS.get()).cbrt();
    late.clamp(1.0, REQUEST_MOST_FACTOR.get()) * idle_factor(apart_ns).min(1.0)
}

impl RequestCost {
    /// The same for each request, independent of length.
    #[must_use]
    pub const fn each(request_ns: f64) -> Self {
        Self {
            request_ns,
            kib_ns: 0.0,
            idle_ns: 0.0,
        }
    }

    /// Cost of a request of this many sectors, this long after the previous one.
    #[must_use]
    pub fn of(&self, sectors: u32, apart_ns: u64) -> f64 {
        let factor = idle_factor(apart_ns);
        self.request_ns * factor
            + self.idle_ns * (factor - 1.0).max(0.0)
            + self.kib_ns * f64::from(sectors) / 2.0
    }

    /// Fits the total time of requests, with the usual and largest cost of one request.
    pub(crate) fn fit(
        used_ns: f64,
        asked: &RequestTotals,
        (usual_ns, most_ns): (f64, f64),
    ) -> Self {
        let used_ns = used_ns.max(0.0);
        let weight = asked.weight.max(REQUEST_LEAST_FACTOR.get());
        let even_ns = used_ns / weight;
        if even_ns <= usual_ns || asked.kib <= 0.0 {
            return Self {
                request_ns: even_ns,
                ..Self::default()
            };
        }
        let left_ns = used_ns - usual_ns * weight;
        let most_idle_ns = usual_ns
            * if asked.is_small_and_rare() {
                IDLE_REQUEST_MOST_FACTOR.get()
            } else {
                1.0
            };
        let idle_ns = (left_ns / asked.idle.max(f64::MIN_POSITIVE)).min(most_idle_ns);
        let left_ns = left_ns - idle_ns * asked.idle;
        let more_ns = (left_ns / weight).min(most_ns - usual_ns);
        Self {
            request_ns: usual_ns + more_ns,
            kib_ns: (left_ns - more_ns * weight).max(0.0) / asked.kib,
            idle_ns,
        }
    }
}

/// Requests to devices, in units of their cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestTotals {
    pub(crate) requests: usize,
    /// Sum of the requests' costs by the time since the previous ones, each relative to its cost a tenth of a
    /// millisecond after it.
    pub(crate) weight: f64,
    /// Sum of the excess over one for requests that were further apart.
    pub(crate) idle: f64,
    pub(crate) kib: f64,
}

impl RequestTotals {
    /// Adds a request of this many sectors, this long after the previous one.
    pub(crate) fn count(&mut self, sectors: u32, apart_ns: u64) {
        let factor = idle_factor(apart_ns);
        self.requests += 1;
        self.weight += factor;
        self.idle += (factor - 1.0).max(0.0);
        self.kib += f64::from(sectors) / 2.0;
    }

    /// Whether the requests' cost cannot come from their bytes, and may come from the time between them.
    fn is_small_and_rare(&self) -> bool {
        let requests = self.requests as f64;
        self.kib < SMALL_REQUEST_KIB.get() * requests && self.idle > requests
    }

    /// The sum of several.
    pub(crate) fn sum(asked: &[Self]) -> Self {
        asked
            .iter()
            .fold(RequestTotals::default(), |sum, one| RequestTotals {
                requests: sum.requests + one.requests,
                weight: sum.weight + one.weight,
                idle: sum.idle + one.idle,
                kib: sum.kib + one.kib,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS_NS: (f64, f64) = (36_000.0, 50_000.0);

    #[test]
    fn what_was_used_is_all_given_to_requests_and_bytes() {
        for (used, weight, idle, kib) in [
            (1e9, 1e4, 0.0, 4e4),
            (1e9, 1e4, 7e3, 4e4),
            (1e9, 10.0, 2.0, 1e8),
            (0.0, 5.0, 0.0, 20.0),
            (1e6, 1.0, 0.0, 0.0),
        ] {
            let asked = RequestTotals {
                weight,
                idle,
                kib,
                ..RequestTotals::default()
            };
            let cost = RequestCost::fit(used, &asked, BOUNDS_NS);
            let all = cost.request_ns * weight + cost.idle_ns * idle + cost.kib_ns * kib;
            assert!((all - used).abs() <= 1e-6 * used, "{all} for {used}");
            assert!(cost.request_ns >= 0.0 && cost.kib_ns >= 0.0 && cost.idle_ns >= 0.0);
        }
        let nothing = RequestCost::fit(-5.0, &RequestTotals::default(), BOUNDS_NS);
        assert_eq!(nothing, RequestCost::default());
    }

    #[test]
    fn what_small_requests_far_apart_cost_is_no_cost_of_those_side_by_side() {
        let (requests, factor) = (1000.0, 3.3);
        let asked = RequestTotals {
            weight: requests * factor,
            idle: requests * (factor - 1.0),
            kib: requests * 9.0,
            requests: requests as usize,
        };
        let cost = RequestCost::fit(requests * 190_000.0, &asked, BOUNDS_NS);
        assert!((cost.of(18, 3_600_000) - 190_000.0).abs() < 2_000.0);
        assert!(cost.of(18, 100_000) < 40_000.0 && cost.kib_ns == 0.0);
    }

    #[test]
    fn requests_far_apart_cost_more() {
        let cost = RequestCost {
            request_ns: 34_000.0,
            ..RequestCost::default()
        };
        let at = |apart_us: u64| cost.of(16, apart_us * 1000);
        assert!((at(100) - 34_000.0).abs() < 1.0);
        assert!((105_000.0..125_000.0).contains(&at(4_200)), "{}", at(4_200));
        assert!(at(0) > 0.0 && at(0) < at(100) && at(1_000_000) < 6.0 * at(100));
    }

    #[test]
    fn a_request_is_on_its_way_for_longer_after_a_pause() {
        let factors =
            [0, 20, 100, 400, 800, 3_000, 8_000, 1_000_000].map(|us| path_factor(us * 1000));
        assert!(factors.windows(2).all(|two| two[0] <= two[1]));
        assert_eq!(factors[2..4], [1.0; 2]);
        assert!(factors[0] >= 0.5 && factors[1] < 0.7);
        assert!((2.5..3.0).contains(&factors[6]));
    }
}
