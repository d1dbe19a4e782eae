//! Which cores are idle, by the kernel's accounts of their time.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use super::thread;

/// Time of each core since the machine was started, in ticks of 10 ms.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CoreTimes(BTreeMap<usize, Ticks>);

#[derive(Clone, Copy, Debug, PartialEq)]
struct Ticks {
    all: u64,
    idle: u64,
}

const TICK: Duration = Duration::from_millis(10);

impl CoreTimes {
    /// The current reading; none where the kernel does not provide it.
    pub(super) fn read() -> Option<Self> {
        Some(Self::parse(&fs::read_to_string("/proc/stat").ok()?))
    }

    /// Lines as `cpu3 user nice system idle iowait irq softirq steal …`, `proc_stat(5)`.
    fn parse(text: &str) -> Self {
        let line = |line: &str| -> Option<(usize, Ticks)> {
            let (name, rest) = line.split_once(' ')?;
            let core = name.strip_prefix("cpu")?.parse().ok()?;
            let ticks: Vec<u64> = rest
                .split(' ')
                .take(8)
                .map_while(|n| n.parse().ok())
                .collect();
            let idle = ticks.get(3)? + ticks.get(4)?;
            let all = ticks.iter().sum();
            Some((core, Ticks { all, idle }))
        };
        Self(text.lines().filter_map(line).collect())
    }

    /// Share of the time since an earlier reading in which others than the caller kept some cores busy.
    pub(super) fn busy_share(&self, earlier: &Self, cores: &[usize], own: Duration) -> f64 {
        let since = |core| self.since(earlier, core);
        let (mut all, mut idle) = (0, 0);
        for ticks in cores.iter().filter_map(since) {
            all += ticks.all;
            idle += ticks.idle;
        }
        let own_ticks = own.as_secs_f64() / TICK.as_secs_f64();
        ((all - idle) as f64 - own_ticks).max(0.0) / all.max(1) as f64
    }

    fn since(&self, earlier: &Self, core: &usize) -> Option<Ticks> {
        let (now, then) = (self.0.get(core)?, earlier.0.get(core)?);
        let all = now.all.saturating_sub(then.all);
        Some(Ticks {
            all,
            idle: now.idle.saturating_sub(then.idle).min(all),
        })
    }
}

/// Cores that the caller may use and that were idle for at least this share of the time, the most idle first.
pub(super) fn mostly_idle(earlier: &CoreTimes, later: &CoreTimes, share: f64) -> Vec<usize> {
    let allowed = thread::allowed_cores();
    let idle_share = |core: usize| {
        let ticks = later.since(earlier, &core)?;
        Some((core, ticks.idle as f64 / ticks.all.max(1) as f64))
    };
    let mut cores: Vec<(usize, f64)> = allowed.into_iter().filter_map(idle_share).collect();
    cores.retain(|&(_, idle)| idle >= share);
    cores.sort_by(|a, b| b.1.total_cmp(&a.1));
    cores.into_iter().map(|(core, _)| core).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str =
        "cpu  9 9 9 9\ncpu0 0 0 0 100 0 0 0 0 0 0\ncpu1 0 0 0 100 0 0 0 0 0 0\nintr 5\n";
    const AFTER: &str =
        "cpu  9 9 9 9\ncpu0 15 0 0 105 0 0 0 0 0 0\ncpu1 1 0 0 110 9 0 0 0 0 0\nintr 5\n";

    #[test]
    fn a_saturated_core_is_not_idle() {
        let (before, after) = (CoreTimes::parse(BEFORE), CoreTimes::parse(AFTER));
        let idle = mostly_idle(&before, &after, 0.75);
        assert!(!idle.contains(&0));
        assert!(idle.is_empty() || idle == [1], "{idle:?}");
    }

    #[test]
    fn own_time_is_not_that_of_others() {
        let (before, after) = (CoreTimes::parse(BEFORE), CoreTimes::parse(AFTER));
        let others = after.busy_share(&before, &[0, 1], Duration::from_millis(60));
        assert!((others - 10.0 / 40.0).abs() < 1e-9, "{others}");
    }
}
