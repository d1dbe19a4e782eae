//! The rules of the log, from the data collected while all sessions were emitted.

use tierwise_recording::{Role, ThreadClass};

use crate::constants::WAITER_WAKE_NS;
use crate::emit::emitter::Emitter;
use crate::rows::median;
use crate::storage::syncs::assumed;
use crate::view::View;
use crate::{LogRules, SyncScript};

const MOST_SCRIPTS: usize = 256;

/// The log's rules; none if nothing was flushed or appended.
pub(crate) fn log(emitter: &Emitter<'_>) -> Option<LogRules> {
    let view = emitter.view;
    let flushes = &view.flushes;
    let region = view.address_space.regions.get(&Role::Log)?;
    if flushes.all.is_empty() && flushes.appended_bytes == 0 {
        return None;
    }
    let scripts = kept(&emitter.log_scripts, view.sees(region.device));
    let (leader_cpu_ns, release_cpu_ns) = emitter.flush_cpu.of_one();
    Some(LogRules {
        grouping: emitter.grouping,
        scripts,
        page_bytes: flushes.page_bytes,
        first_sector: 0,
        sectors: region.sectors,
        leader_cpu_ns,
        release_cpu_ns,
        wake_ns: wake_ns(view) as u32,
        flusher_period_ns: flushes.flusher_period_ns(view),
        commit_delay: flushes.delays.rule,
    })
}

/// Scripts sampled evenly from all; an assumed one where the device's requests are not known.
fn kept(all: &[SyncScript], seen: bool) -> Vec<SyncScript> {
    let working: Vec<&SyncScript> = all.iter().filter(|script| script.flushes > 0).collect();
    if !seen || working.is_empty() {
        return vec![assumed(false)];
    }
    let step = working.len().div_ceil(MOST_SCRIPTS);
    working.into_iter().step_by(step).cloned().collect()
}

/// From the end of a flush until a waiter is woken, per waiter: the median over all.
fn wake_ns(view: &View<'_>) -> u64 {
    let waits = view
        .threads(ThreadClass::Session)
        .flat_map(|thread| view.waits(thread));
    let mut woken: Vec<(u64, u32, u64)> = waits
        .filter_map(|wait| {
            let flush = view.flushes.that_woke(wait)?;
            Some((flush.end_ns, flush.thread, wait.end_ns))
        })
        .collect();
    woken.sort_unstable();
    let of_one_flush = woken.chunk_by(|one, other| one.0 == other.0);
    let times = of_one_flush.flat_map(|woken| {
        let ranked = (1..).zip(woken);
        ranked.map(|(rank, (flush_ns, _, woken_ns))| woken_ns.saturating_sub(*flush_ns) / rank)
    });
    median(times.collect()).unwrap_or(WAITER_WAKE_NS.get())
}
