//! Costs of the host, measured gently: on cores that are mostly idle, at idle priority, without I/O.
//!
//! Other programs can only lengthen a measured time. So nothing is measured where no core is idle, and a
//! measurement is dropped where others used its cores meanwhile.

mod cache;
mod idle_cores;
mod thread;
mod wakeup;
mod workload;

use std::thread as threads;
use std::time::{Duration, Instant};

use tierwise_recording::Host;

use idle_cores::{CoreTimes, mostly_idle};

/// How long idle cores are searched for; the kernel counts their time in 10 ms.
const WATCH: Duration = Duration::from_millis(200);
/// A core counts as idle if it is idle for this share of the time; the rest is tolerated.
const IDLE_SHARE: f64 = 0.75;
/// Time limit of the whole measurement; costs not measured by then stay missing.
const LONGEST: Duration = Duration::from_millis(1_500);

/// Measures the host; none where no core is idle, or others ran on the cores meanwhile.
#[must_use]
pub fn measure_host() -> Option<Host> {
    // Priority and affinity are those of a thread, and the caller's stay as they are.
    threads::spawn(measure).join().ok().flatten()
}

fn measure() -> Option<Host> {
    let until = Instant::now() + LONGEST;
    let before = CoreTimes::read()?;
    threads::sleep(WATCH);
    let watched = CoreTimes::read()?;
    let idle = mostly_idle(&before, &watched, IDLE_SHARE);
    let core = *idle.first()?;
    thread::background(core).ok()?;
    let cpu = thread::process_cpu();
    let mut host = Host {
        context_switch_us: wakeup::context_switch_us(core, until),
        cache_warmup: cache::cache_warmup(core, until),
        ..Host::default()
    };
    let mut used = vec![core];
    if let Some(&other) = idle.get(1) {
        host.wakeup_latency = wakeup::wakeup_latency(core, other, until);
        used.push(other);
    }
    let own = thread::process_cpu().saturating_sub(cpu);
    host.cpu_s = own.as_secs_f64();
    let left_alone = CoreTimes::read()?.busy_share(&watched, &used, own) <= 1.0 - IDLE_SHARE;
    left_alone.then_some(host)
}

/// The value below which a share of the values lies; none of none.
fn quantile(values: &mut [f64], share: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    values.sort_by(f64::total_cmp);
    Some(values[(last as f64 * share).round() as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_host_has_plausible_costs_within_two_seconds() {
        let began = Instant::now();
        let Some(host) = measure_host() else {
            return; // Others use the cores just now.
        };
        assert!(began.elapsed() < Duration::from_secs(2));
        assert!(host.cpu_s < 1.5, "{} s of processor time", host.cpu_s);
        let switch_us = host.context_switch_us.unwrap();
        assert!((0.1..200.0).contains(&switch_us), "{switch_us} µs");
        for one in &host.wakeup_latency {
            assert!((0.1..5_000.0).contains(&one.median_us), "{one:?}");
            assert!(one.median_us <= one.p90_us, "{one:?}");
        }
        let warmup = host.cache_warmup.unwrap();
        assert!((5e3..5e6).contains(&warmup.warm_ns), "{warmup:?}");
        assert_eq!(warmup.pauses.len(), 3);
        assert!(warmup.pauses.iter().all(|one| one.shared_core_ns >= 0.0));
    }

    #[test]
    fn quantiles_are_values() {
        let mut values = [3.0, 1.0, 2.0];
        assert_eq!(quantile(&mut values, 0.5), Some(2.0));
        assert_eq!(quantile(&mut values, 0.9), Some(3.0));
        assert_eq!(quantile(&mut [], 0.5), None);
    }
}
