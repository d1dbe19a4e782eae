//! Flushes of the log: which calls make it durable, and how much was appended.

use std::collections::{BTreeMap, BTreeSet};

use tierwise_recording::{BlockOp, Call, CallKind, NONE, Role, StateKind, ThreadClass, UNKNOWN};

use crate::constants::{FIRST_WAKE_NS, NEXT_WAKE_NS};
use crate::index::calls::makes_durable;
use crate::index::rows::Rows;
use crate::index::sizes::SECTOR_BYTES;
use crate::log::commit_delay::CommitDelays;
use crate::log::log_replica::LogReplica;
use crate::log::wal_header::is_header;

/// One flush of the log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Flush {
    pub(crate) thread: u32,
    pub(crate) file: u32,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    /// When the last of its waiters was woken.
    pub(crate) woke_until_ns: u64,
}

/// All flushes of the log, and the bytes appended to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogFlushes {
    /// Sorted by start.
    pub(crate) all: Vec<Flush>,
    by_thread: BTreeMap<u32, Vec<Flush>>,
    /// Bytes by which the log grew in all bursts.
    pub(crate) appended_bytes: u64,
    /// Smallest distance between written positions of the log.
    pub(crate) page_bytes: u32,
    /// The log's second copy; its flushes are not among these.
    pub(crate) replica: Option<LogReplica>,
    /// Waits of leaders for more commits.
    pub(crate) delays: CommitDelays,
}

impl LogFlushes {
    pub(crate) fn new(rows: &Rows<'_>) -> Self {
        let mut found = Self {
            replica: LogReplica::find(rows),
            ..Self::default()
        };
        let mut writes: Vec<&Call> = Vec::new();
        let mut unflushed: BTreeSet<u32> = BTreeSet::new();
        // Where one session at a time writes, a session that flushes the log has written to it, unless it
        // moves the log's pages to their places: that is an ordinary sync.
        let one_writer = rows.engine.has_one_writer();
        for call in &rows.recording.calls {
            let other = call.failed || found.is_replica(call.thread);
            if other || rows.role(call.file) != Some(Role::Log) {
                continue;
            }
            if is_header(rows, call) {
                continue;
            }
            if call.kind == CallKind::Write {
                writes.push(call);
                unflushed.insert(call.thread);
            }
            if flushes(rows, call) && (unflushed.remove(&call.thread) || !one_writer) {
                found.all.push(Flush {
                    thread: call.thread,
                    file: call.file,
                    start_ns: call.start_ns,
                    end_ns: call.end_ns,
                    woke_until_ns: call.end_ns,
                });
            }
        }
        found.all.sort_by_key(|flush| flush.start_ns);
        chain(rows, &mut found.all);
        found.delays = CommitDelays::find(rows, &found.all);
        for flush in &found.all {
            found
                .by_thread
                .entry(flush.thread)
                .or_default()
                .push(*flush);
        }
        writes.sort_by_key(|call| call.start_ns);
        found.appended_bytes = appended_bytes(&writes);
        found.page_bytes = page_bytes(rows, &writes);
        found
    }

    /// Whether a thread makes a second copy of the log.
    pub(crate) fn is_replica(&self, thread: u32) -> bool {
        self.replica.is_some_and(|replica| replica.has(thread))
    }

    /// The last flush of a thread that began before an instant.
    pub(crate) fn last_of(&self, thread: u32, before_ns: u64) -> Option<&Flush> {
        let flushes = self.by_thread.get(&thread)?;
        let after = flushes.partition_point(|flush| flush.start_ns < before_ns);
        flushes[..after].last()
    }

    /// Whether a thread began a flush at an instant.
    pub(crate) fn has(&self, thread: u32, start_ns: u64) -> bool {
        self.by_thread.get(&thread).is_some_and(|flushes| {
            let key = |flush: &Flush| flush.start_ns;
            flushes.binary_search_by_key(&start_ns, key).is_ok()
        })
    }

    /// The flush that ended a wait: the waker's, which ended just before, after the wait began.
    pub(crate) fn that_woke(
        &self,
        waker: u32,
        wait_start_ns: u64,
        woken_ns: u64,
    ) -> Option<&Flush> {
        let flush = self.last_of(waker, woken_ns)?;
        let in_time = flush.woke_until_ns >= woken_ns && flush.end_ns >= wait_start_ns;
        in_time.then_some(flush)
    }

    /// How often a thread of the engine, not a session, flushes the log.
    pub(crate) fn flusher_period_ns(&self, rows: &Rows<'_>) -> Option<u64> {
        let by_writer = |flush: &&Flush| {
            let class = rows.class(flush.thread);
            matches!(
                class,
                Some(ThreadClass::LogWriter | ThreadClass::Background)
            )
        };
        let flushes = self.all.iter().filter(by_writer).count() as u64;
        (flushes >= 2).then(|| rows.span_ns() / flushes)
    }
}

/// Finds the end of the wakeup chain after each flush.
fn chain(rows: &Rows<'_>, flushes: &mut [Flush]) {
    let mut wakings: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for state in rows
        .recording
        .states
        .iter()
        .filter(|state| state.waker != NONE)
    {
        let polls = rows
            .call(state.call)
            .is_some_and(|call| call.kind != CallKind::Lock);
        if state.kind == StateKind::Blocked && !polls {
            wakings.entry(state.waker).or_default().push(state.end_ns);
        }
    }
    wakings.values_mut().for_each(|times| times.sort_unstable());
    for flush in flushes {
        let Some(times) = wakings.get(&flush.thread) else {
            continue;
        };
        let first = times.partition_point(|&time| time < flush.end_ns);
        let mut most_ns = FIRST_WAKE_NS.get();
        for &time in &times[first..] {
            if rows.on_core_ns(flush.thread, flush.woke_until_ns, time) > most_ns {
                break;
            }
            flush.woke_until_ns = time;
            most_ns = NEXT_WAKE_NS.get();
        }
    }
}

/// Whether a call makes the log durable: a sync, or a write that flushed the device or bypassed its cache.
fn flushes(rows: &Rows<'_>, call: &Call) -> bool {
    if makes_durable(call) {
        return true;
    }
    call.kind == CallKind::Write
        && rows.blocks(call.start_ns, call.end_ns).iter().any(|block| {
            let ours = block.thread == call.thread || block.file == call.file;
            ours && (block.op == BlockOp::Flush || block.fua || block.preflush)
        })
}

/// Distance that the end of the log moved; a rewritten page does not count.
fn appended_bytes(writes: &[&Call]) -> u64 {
    let mut last: Option<(u32, u64)> = None;
    let mut sum = 0;
    for call in writes {
        let known = call.offset_bytes != UNKNOWN;
        let end = call.offset_bytes.saturating_add(call.size_bytes);
        sum += match last {
            Some((file, before)) if known && file == call.file && end >= before => {
                (end - before).min(call.size_bytes)
            }
            _ => call.size_bytes,
        };
        if known {
            last = Some((call.file, end));
        }
    }
    sum
}

/// The granule of writes to the log: of the engine's, and of the device's, since the page cache writes whole
/// pages.
fn page_bytes(rows: &Rows<'_>, writes: &[&Call]) -> u32 {
    let known = writes
        .iter()
        .filter(|call| call.offset_bytes != UNKNOWN && call.offset_bytes > 0);
    let asked = granule(known.map(|call| call.offset_bytes | call.size_bytes));
    let blocks = rows.recording.blocks.iter().filter(|block| {
        block.op == BlockOp::Write
            && block.sector != UNKNOWN
            && rows.role(block.file) == Some(Role::Log)
    });
    let sent = granule(
        blocks.map(|block| (block.sector | u64::from(block.sectors)).saturating_mul(SECTOR_BYTES)),
    );
    asked.unwrap_or(4096).max(sent.unwrap_or(512).min(4096))
}

/// The largest power of two, up to 64 KiB, that divides nearly all of some sizes; none if there are no sizes.
fn granule(sizes: impl Iterator<Item = u64>) -> Option<u32> {
    let mut by_shift = [0_usize; 17];
    for size in sizes {
        by_shift[size.trailing_zeros().min(16) as usize] += 1;
    }
    let all: usize = by_shift.iter().sum();
    let mut below = 0;
    by_shift.iter().enumerate().find_map(|(shift, count)| {
        below += count;
        (below * 10 > all).then(|| 1 << shift.max(9))
    })
}
