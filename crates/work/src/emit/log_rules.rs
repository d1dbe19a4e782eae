//! The rules of the log, from the data collected while all sessions were emitted.

use crate::LogRules;
use crate::SyncScript;
use crate::constants::{RECHECK_NS, WAITER_WAKE_NS};
use crate::emit::emitter::Emitter;
use crate::statistics::median;
use crate::storage::sync_scripts;
use tierwise_recording::{Role, StateKind, ThreadClass};

/// Scripts that are kept.
const MOST_SCRIPTS: usize = 256;
/// Fewer than one in this many count as chance.
const BY_CHANCE: usize = 20;

/// The log's rules; none if nothing was flushed or appended.
pub(crate) fn log(emitter: &Emitter<'_>) -> Option<LogRules> {
    let (view, flushes) = (emitter.view, emitter.flushes);
    let region = view.address_space.region(Role::Log)?;
    if flushes.all.is_empty() && flushes.appended_bytes == 0 {
        return None;
    }
    let seen = view.sees(region.device);
    let (leader_cpu_ns, release_cpu_ns) = emitter.flush_cpu.of_one();
    Some(LogRules {
        grouping: emitter.grouping,
        scripts: match emitter.checkpoints {
            Some(_) => with_growth(kept(&emitter.log_scripts, seen)),
            None => kept(&emitter.log_scripts, seen),
        },
        page_bytes: flushes.page_bytes,
        first_sector: 0,
        sectors: region.sectors,
        leader_cpu_ns,
        release_cpu_ns,
        wake_ns: wake_ns(emitter) as u32,
        recheck_ns: RECHECK_NS.get() as u32,
        flusher_period_ns: flushes.flusher_period_ns(view),
        commit_delay: flushes.delays.rule,
    })
}

/// Scripts sampled evenly from all; an assumed one where the device's requests are not known.
fn kept(all: &[SyncScript], seen: bool) -> Vec<SyncScript> {
    let working: Vec<&SyncScript> = all.iter().filter(|script| script.flushes > 0).collect();
    if !seen || working.is_empty() {
        return vec![sync_scripts::assumed(false)];
    }
    let step = working.len().div_ceil(MOST_SCRIPTS);
    working.into_iter().step_by(step).cloned().collect()
}

/// The same, split into flushes that extend the log and flushes that do not, for a replay that knows which. A
/// small share that wrote the file system's journal coincided with a periodic journal commit.
fn with_growth(scripts: Vec<SyncScript>) -> Vec<SyncScript> {
    let count = scripts.len();
    let (mut growing, mut plain): (Vec<_>, Vec<_>) = scripts
        .into_iter()
        .partition(|script| !script.journal_writes.is_empty());
    if growing.len() * BY_CHANCE < count {
        growing = vec![sync_scripts::assumed(true)];
    }
    if plain.len() * BY_CHANCE < count {
        plain = vec![sync_scripts::assumed(false)];
    }
    plain.append(&mut growing);
    plain
}

/// From the end of a flush until a waiter is woken, per waiter: the median over all.
fn wake_ns(emitter: &Emitter<'_>) -> u64 {
    let mut times: Vec<u64> = Vec::new();
    let mut rank = (0, 0);
    let mut woken: Vec<(u64, u32, u64)> = Vec::new();
    for thread in emitter.view.threads(ThreadClass::Session) {
        for state in emitter.view.states(thread) {
            if state.kind != StateKind::Blocked {
                continue;
            }
            let flush = emitter
                .flushes
                .that_woke(state.waker, state.start_ns, state.end_ns);
            woken.extend(flush.map(|flush| (flush.end_ns, flush.thread, state.end_ns)));
        }
    }
    woken.sort_unstable();
    for (flush_ns, _, woken_ns) in woken {
        rank = if rank.0 == flush_ns {
            (flush_ns, rank.1 + 1)
        } else {
            (flush_ns, 1)
        };
        times.push(woken_ns.saturating_sub(flush_ns) / rank.1);
    }
    median(times).unwrap_or(WAITER_WAKE_NS.get())
}
