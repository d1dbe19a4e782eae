//! The database's log: its flushes, which commits share them, its second copy, SQLite's checkpoints.
//!
//! Nothing here knows of turns or transactions.

use std::collections::{BTreeMap, BTreeSet};

use tierwise_recording::{
    BlockOp, Call, CallKind, NONE, Role, SECTOR_BYTES, State, StateKind, ThreadClass, UNKNOWN,
};

use crate::constants::{EXCEPTIONS_SHARE, MAJORITY_SHARE, WOKEN_NS};
use crate::engines::{FlushSharing, WriteAheadLog};
use crate::recording_rows::{RecordingRows, makes_durable, median};
use crate::{CommitDelay, CommitGrouping};

// Flushes of the log: which calls make it durable, how commits share them, and how much was appended.

/// Least number of threads that a flush woke without covering them, to infer how commits share flushes.
const ENOUGH: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LogFlush {
    pub(crate) thread: u32,
    pub(crate) file: u32,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    /// When the last of its waiters was woken.
    woke_until_ns: u64,
}

/// All flushes of the log, and the bytes appended to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogFlushes {
    /// Sorted by start.
    pub(crate) all: Vec<LogFlush>,
    by_thread: BTreeMap<u32, Vec<LogFlush>>,
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
    pub(crate) fn new(rows: &RecordingRows<'_>) -> Self {
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
            if other || rows.role(call.file) != Some(Role::Log) || writes_log_header(rows, call) {
                continue;
            }
            if call.kind == CallKind::Write {
                writes.push(call);
                unflushed.insert(call.thread);
            }
            if call_makes_log_durable(rows, call) && (unflushed.remove(&call.thread) || !one_writer)
            {
                found.all.push(LogFlush {
                    thread: call.thread,
                    file: call.file,
                    start_ns: call.start_ns,
                    end_ns: call.end_ns,
                    woke_until_ns: call.end_ns,
                });
            }
        }
        found.all.sort_by_key(|flush| flush.start_ns);
        end_of_wakeup_chain(rows, &mut found.all);
        found.delays = CommitDelays::find(rows, &found.all);
        for flush in &found.all {
            let of_thread = found.by_thread.entry(flush.thread).or_default();
            of_thread.push(*flush);
        }
        writes.sort_by_key(|call| call.start_ns);
        found.appended_bytes = appended_log_bytes(&writes);
        found.page_bytes = log_page_bytes(rows, &writes);
        found
    }

    /// Whether a flush began and ended within this time: without one, nothing that was appended in it was made durable.
    pub(crate) fn any_within(&self, from_ns: u64, to_ns: u64) -> bool {
        let first = self.all.partition_point(|flush| flush.start_ns < from_ns);
        let mut begun = self.all[first..]
            .iter()
            .take_while(|flush| flush.start_ns <= to_ns);
        begun.any(|flush| flush.end_ns <= to_ns)
    }

    pub(crate) fn is_replica(&self, thread: u32) -> bool {
        self.replica
            .is_some_and(|replica| thread == replica.sender || thread == replica.receiver)
    }

    /// The last flush of a thread that began before an instant.
    pub(crate) fn last_of(&self, thread: u32, before_ns: u64) -> Option<&LogFlush> {
        let flushes = self.by_thread.get(&thread)?;
        let after = flushes.partition_point(|flush| flush.start_ns < before_ns);
        flushes[..after].last()
    }

    pub(crate) fn has(&self, call: &Call) -> bool {
        self.by_thread.get(&call.thread).is_some_and(|flushes| {
            let key = |flush: &LogFlush| flush.start_ns;
            flushes.binary_search_by_key(&call.start_ns, key).is_ok()
        })
    }

    /// The flush that ended a wait: the waker's, which ended just before, after the wait began.
    pub(crate) fn that_woke(&self, wait: &State) -> Option<&LogFlush> {
        let flush = self.last_of(wait.waker, wait.end_ns)?;
        let in_time = flush.woke_until_ns >= wait.end_ns && flush.end_ns >= wait.start_ns;
        in_time.then_some(flush)
    }

    /// How often a thread of the engine, not a session, flushes the log.
    pub(crate) fn flusher_period_ns(&self, rows: &RecordingRows<'_>) -> Option<u64> {
        let by_writer = |flush: &&LogFlush| {
            let class = rows.class(flush.thread);
            class != Some(ThreadClass::Session) && rows.is_engines(flush.thread)
        };
        let flushes = self.all.iter().filter(by_writer).count() as u64;
        (flushes >= 2).then(|| rows.span_ns() / flushes)
    }

    /// How commits share flushes: by the rules of the engine, or by which threads wake which after a flush.
    pub(crate) fn grouping(&self, rows: &RecordingRows<'_>) -> CommitGrouping {
        let overlap = overlapping_flushes_share(&self.all) > EXCEPTIONS_SHARE.get();
        match rows.engine.flush_sharing {
            FlushSharing::Always(grouping) => grouping,
            _ if overlap => CommitGrouping::Alone,
            FlushSharing::UnlessOverlapping(grouping) => grouping,
            FlushSharing::Inferred => self.inferred(rows),
        }
    }

    /// Infers the rule from threads that a flush woke without covering them: either all of them are woken,
    /// and all but one wait again, or only the next leader is woken.
    fn inferred(&self, rows: &RecordingRows<'_>) -> CommitGrouping {
        let sessions = rows.threads(ThreadClass::Session);
        let led: Vec<bool> = sessions
            .flat_map(|thread| self.led_once_woken_early(rows, thread))
            .collect();
        let again = led.iter().filter(|led| !**led).count() as f64;
        match led.len() >= ENOUGH && again <= EXCEPTIONS_SHARE.get() * led.len() as f64 {
            true => CommitGrouping::Relay,
            false => CommitGrouping::LeaderFollower,
        }
    }

    /// Each time a flush woke a thread without covering it: whether the thread then flushed the log itself
    /// rather than waiting again.
    fn led_once_woken_early(&self, rows: &RecordingRows<'_>, thread: u32) -> Vec<bool> {
        // Start and end of the thread's own flushes and of its waits for others', and whether it is its own.
        let own = self.all.iter().filter(|flush| flush.thread == thread);
        let mut steps: Vec<(u64, u64, bool)> = own
            .map(|flush| (flush.start_ns, flush.end_ns, true))
            .collect();
        let waits = rows.waits(thread);
        let waits = waits.filter(|wait| self.that_woke(wait).is_some());
        steps.extend(waits.map(|wait| (wait.start_ns, wait.end_ns, false)));
        steps.sort_by_key(|step| step.0);
        let early = steps.windows(2).filter(|pair| {
            let ((_, woken_ns, own), (next_ns, ..)) = (pair[0], pair[1]);
            !own && rows.on_core_ns(thread, woken_ns, next_ns) < WOKEN_NS.get()
                && !rows.talked(thread, woken_ns, next_ns)
        });
        early.map(|pair| pair[1].2).collect()
    }
}

/// Share of flushes of one file that began before another had ended.
fn overlapping_flushes_share(flushes: &[LogFlush]) -> f64 {
    let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
    let mut count = 0_u32;
    for flush in flushes {
        let end = ends.entry(flush.file).or_default();
        count += u32::from(flush.start_ns < *end);
        *end = (*end).max(flush.end_ns);
    }
    f64::from(count) / flushes.len().max(1) as f64
}

/// Finds the end of the wakeup chain after each flush.
fn end_of_wakeup_chain(rows: &RecordingRows<'_>, flushes: &mut [LogFlush]) {
    let mut wakings: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    let states = rows.recording.states.iter();
    for state in states.filter(|state| state.kind == StateKind::Blocked && state.waker != NONE) {
        let call = rows.call(state.call);
        if call.is_none_or(|call| call.kind == CallKind::Lock) {
            wakings.entry(state.waker).or_default().push(state.end_ns);
        }
    }
    wakings.values_mut().for_each(|times| times.sort_unstable());
    for flush in flushes {
        let Some(times) = wakings.get(&flush.thread) else {
            continue;
        };
        let first = times.partition_point(|&time| time < flush.end_ns);
        for &time in &times[first..] {
            if rows.on_core_ns(flush.thread, flush.woke_until_ns, time) > WOKEN_NS.get() {
                break;
            }
            flush.woke_until_ns = time;
        }
    }
}

/// Whether a call makes the log durable: a sync, or a write that flushed the device or bypassed its cache.
fn call_makes_log_durable(rows: &RecordingRows<'_>, call: &Call) -> bool {
    let forced = || {
        rows.blocks_during(call).iter().any(|block| {
            let ours = block.thread == call.thread || block.file == call.file;
            ours && (block.op == BlockOp::Flush || block.fua || block.preflush)
        })
    };
    makes_durable(call) || (call.kind == CallKind::Write && forced())
}

/// Whether a call writes the header of a write-ahead log, which restarts it.
pub(crate) fn writes_log_header(rows: &RecordingRows<'_>, call: &Call) -> bool {
    call.kind == CallKind::Write
        && call.offset_bytes == 0
        && rows.role(call.file) == Some(Role::Log)
        && write_ahead_log(rows).is_some_and(|log| call.size_bytes == log.header_bytes)
}

/// The write-ahead log, if the engine keeps one.
pub(crate) fn write_ahead_log(rows: &RecordingRows<'_>) -> Option<&'static WriteAheadLog> {
    let settings = &rows.recording.about.settings;
    rows.engine.write_ahead_log(settings)
}

/// Distance that the end of the log moved; a rewritten page does not count.
fn appended_log_bytes(writes: &[&Call]) -> u64 {
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
fn log_page_bytes(rows: &RecordingRows<'_>, writes: &[&Call]) -> u32 {
    let known = writes
        .iter()
        .filter(|call| call.offset_bytes != UNKNOWN && call.offset_bytes > 0);
    let asked = size_granule(known.map(|call| call.offset_bytes | call.size_bytes));
    let blocks = rows.recording.blocks.iter().filter(|block| {
        block.op == BlockOp::Write
            && block.sector != UNKNOWN
            && rows.role(block.file) == Some(Role::Log)
    });
    let sent = size_granule(
        blocks.map(|block| (block.sector | u64::from(block.sectors)).saturating_mul(SECTOR_BYTES)),
    );
    asked.unwrap_or(4096).max(sent.unwrap_or(512).min(4096))
}

/// The largest power of two, up to 64 KiB, that divides nearly all of some sizes; none if there are no sizes.
fn size_granule(sizes: impl Iterator<Item = u64>) -> Option<u32> {
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

// The wait of a flush's leader for more commits (PostgreSQL's `commit_delay`): known from the settings, else inferred
// from sleeps of one length before flushes.
//
// Source: PostgreSQL, `XLogFlush` (xlog.c): the leader sleeps with the log's lock held, if `MinimumActiveBackends`
// finds enough others, and then flushes all that is inserted by then.

/// Most time on a core from the end of the wait to the flush: the leader copies and writes the log's buffer meanwhile.
const LEADER_NS: u64 = 1_000_000;
/// Least number of waits from which a delay is inferred, and the least share of the sessions' flushes.
const ENOUGH_WAITS: usize = 20;
const LEAST_SHARE: f64 = 0.3;
/// Least share of the waits that last as long as the median one, within this factor of it.
const ALIKE_SHARE: f64 = 0.8;
const ALIKE_FACTOR: f64 = 1.15;
/// Shorter waits are no delay that anybody sets. Chosen: the kernel's timer slack twice.
const LEAST_NS: u64 = 100_000;

/// The delay and the waits for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommitDelays {
    pub(crate) rule: Option<CommitDelay>,
    /// Thread and start of each wait.
    waits: BTreeSet<(u32, u64)>,
}

impl CommitDelays {
    pub(crate) fn find(rows: &RecordingRows<'_>, flushes: &[LogFlush]) -> Self {
        let settings = &rows.recording.about.settings;
        let said = rows.engine.commit_delay(settings);
        if rows.engine.has_one_writer() || said.is_some_and(|said| said.time_ns == 0) {
            return Self::default();
        }
        let of_session = |flush: &&LogFlush| rows.class(flush.thread) == Some(ThreadClass::Session);
        let led: Vec<&LogFlush> = flushes.iter().filter(of_session).collect();
        let sleeps = led
            .iter()
            .filter_map(|flush| sleep_before_flush(rows, flush));
        let sleeps: Vec<&State> = sleeps.collect();
        let lengths = sleeps.iter().map(|state| state.end_ns - state.start_ns);
        let lengths: Vec<u64> = lengths.collect();
        let rule = match said {
            Some(said) => {
                let least_ns = u64::from(said.time_ns);
                let kept = lengths.iter().copied().filter(|ns| *ns >= least_ns);
                let seen_ns = median(kept.collect()).unwrap_or(least_ns);
                let time_ns = seen_ns.min(least_ns * 2) as u32;
                Some(CommitDelay { time_ns, ..said })
            }
            None => inferred_delay(&lengths, led.len(), rows.engine.usual_siblings()),
        };
        let waits = sleeps.into_iter().zip(lengths).filter(|&(_, length_ns)| {
            rule.is_some_and(|rule| is_like_usual_delay(length_ns, rule.time_ns))
        });
        Self {
            waits: waits
                .map(|(state, _)| (state.thread, state.start_ns))
                .collect(),
            rule,
        }
    }

    /// Whether a wait of a thread that began then is one of these.
    pub(crate) fn has(&self, state: &State) -> bool {
        self.waits.contains(&(state.thread, state.start_ns))
    }
}

/// The sleep that ended just before a flush, by the same thread, with nothing asked of it in between.
fn sleep_before_flush<'a>(rows: &RecordingRows<'a>, flush: &LogFlush) -> Option<&'a State> {
    let states = rows.states(flush.thread);
    let before = states.partition_point(|state| state.end_ns <= flush.start_ns);
    let mut before = states[..before].iter().rev();
    let last = before.find(|state| state.kind == StateKind::Blocked)?;
    let call = rows.call(last.call)?;
    let timed = matches!(call.kind, CallKind::Sleep | CallKind::Poll) && last.waker == NONE;
    let ran_ns = rows.on_core_ns(flush.thread, last.end_ns, flush.start_ns);
    let leads = ran_ns <= LEADER_NS && !rows.talked(flush.thread, last.end_ns, flush.start_ns);
    (timed && leads).then_some(last)
}

/// A delay that the settings do not tell: sleeps of one length before a good part of the flushes.
fn inferred_delay(lengths: &[u64], led: usize, usual_siblings: u32) -> Option<CommitDelay> {
    let long = lengths.iter().copied().filter(|ns| *ns >= LEAST_NS);
    let long: Vec<u64> = long.collect();
    let usual_ns = u32::try_from(median(long.clone())?).ok()?;
    let alike = long
        .iter()
        .filter(|ns| is_like_usual_delay(**ns, usual_ns))
        .count();
    let often = long.len() as f64 >= LEAST_SHARE * led as f64;
    let steady = alike as f64 >= ALIKE_SHARE * long.len() as f64;
    (long.len() >= ENOUGH_WAITS && often && steady).then_some(CommitDelay {
        time_ns: usual_ns,
        // Where all flushes were late, no number of others was too few.
        siblings: if alike * 10 < led * 9 {
            usual_siblings
        } else {
            0
        },
        from_settings: false,
    })
}

fn is_like_usual_delay(length_ns: u64, usual_ns: u32) -> bool {
    let usual_ns = f64::from(usual_ns);
    (usual_ns / ALIKE_FACTOR..=usual_ns * ALIKE_FACTOR).contains(&(length_ns as f64))
}

// A replica of the log on the same machine: an engine's sender, which waits until the log is durable, and a
// receiver, which makes the copy durable and acknowledges it (`pg_receivewal`, a standby's receiver).
//
// Where sessions wait for the sender too, a commit ends when both copies are durable. The replica has its
// own group commit: each of its flushes covers all that the log's flushes had covered when it began. So one
// cycle of both threads is the unit.

/// The threads of a second copy of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogReplica {
    pub(crate) sender: u32,
    pub(crate) receiver: u32,
    /// Whether commits wait for the copy.
    pub(crate) waited_for: bool,
}

impl LogReplica {
    /// The copy's threads, if there is a copy: the receiver writes log files that no other thread writes, and
    /// gets their data from a background thread that does not flush the log.
    pub(crate) fn find(rows: &RecordingRows<'_>) -> Option<Self> {
        let (flushes, writers) = flushes_and_writers(rows);
        let alone = |thread: u32| {
            let mut files = writers.values().filter(|by| by.contains(&thread));
            files.all(|by| by.len() == 1)
        };
        let is_sent = |thread: u32| rows.calls(thread).iter().any(|call| rows.received(call));
        let mut receivers = flushes.keys().copied();
        receivers.find_map(|receiver| {
            if flushes.len() < 2 || !alone(receiver) || !is_sent(receiver) {
                return None;
            }
            let sender = thread_that_wakes(rows, receiver)?;
            let sends = rows.class(sender) == Some(ThreadClass::Background);
            let least = MAJORITY_SHARE.get() * f64::from(flushes[&receiver]);
            (sends && !flushes.contains_key(&sender)).then(|| Self {
                sender,
                receiver,
                waited_for: waits_ended_by(rows, sender, receiver) as f64 >= least,
            })
        })
    }
}

/// Whether a call flushes the log.
pub(crate) fn flushes_log(rows: &RecordingRows<'_>, call: &Call) -> bool {
    makes_durable(call) && !call.failed && rows.role(call.file) == Some(Role::Log)
}

/// Each thread's number of log flushes, and the writers of each log file.
fn flushes_and_writers(
    rows: &RecordingRows<'_>,
) -> (BTreeMap<u32, u32>, BTreeMap<u32, BTreeSet<u32>>) {
    let mut flushes: BTreeMap<u32, u32> = BTreeMap::new();
    let mut writers: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for call in &rows.recording.calls {
        let flushed = flushes_log(rows, call);
        if flushed {
            *flushes.entry(call.thread).or_default() += 1;
        }
        let writes = call.kind == CallKind::Write && rows.role(call.file) == Some(Role::Log);
        if writes || flushed {
            writers.entry(call.file).or_default().insert(call.thread);
        }
    }
    (flushes, writers)
}

/// The thread that ended most of a thread's waits.
fn thread_that_wakes(rows: &RecordingRows<'_>, receiver: u32) -> Option<u32> {
    let mut ended: BTreeMap<u32, u32> = BTreeMap::new();
    for wait in rows.waits(receiver) {
        let class = rows.class(wait.waker);
        if class.is_some_and(|class| class != ThreadClass::Kernel) {
            *ended.entry(wait.waker).or_default() += 1;
        }
    }
    let most = ended.into_iter().max_by_key(|&(_, count)| count);
    most.map(|(thread, _)| thread)
}

/// Number of waits of sessions that the sender ended.
fn waits_ended_by(rows: &RecordingRows<'_>, sender: u32, receiver: u32) -> usize {
    let sessions = rows.threads(ThreadClass::Session);
    let waits = sessions
        .filter(|&thread| thread != receiver)
        .flat_map(|thread| rows.waits(thread));
    waits.filter(|wait| wait.waker == sender).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_of_one_length_before_flushes_are_a_delay() {
        let steady: Vec<u64> = (0..40).map(|at| 20_100_000 + at * 1_000).collect();
        let found = inferred_delay(&steady, 40, 5).expect("all flushes had one");
        assert_eq!((found.time_ns / 1_000, found.siblings), (20_120, 0));
        assert_eq!(
            inferred_delay(&steady, 100, 5)
                .expect("many had one")
                .siblings,
            5
        );
        assert_eq!(inferred_delay(&steady, 1_000, 5), None, "few had one");
        assert_eq!(inferred_delay(&steady[..10], 10, 5), None);
        let varied: Vec<u64> = (1..41).map(|at| at * 1_000_000).collect();
        assert_eq!(inferred_delay(&varied, 40, 5), None);
        assert_eq!(
            inferred_delay(&[50_000; 40], 40, 5),
            None,
            "a timer's slack"
        );
    }
}
