//! Checkpoints triggered by pages: a commit that finds enough pages in the log moves them to their places.
//! The moved pages depend on the changes since the last checkpoint, so recorded checkpoints are left out of
//! their sessions' turns and kept as rules (`wal.rs` says which engine's).

use std::collections::BTreeMap;

use tierwise_recording::Role;

use crate::constants::{WAL_FRAME_NS, WAL_GROWING_NS, WAL_GROWING_SHARE};
use crate::log::flushes::write_ahead_log;
use crate::log::wal::{LoggedCommit, Wal};
use crate::log::wal_pages;
use crate::rows::{Rows, SECTOR_BYTES, median};
use crate::storage::syncs::Syncs;
use crate::storage::syncs::assumed;
use crate::view::View;
use crate::{CheckpointRules, Step, SyncScript};

/// Page counts that differ by less than a thousandth are equal: they differ by rounding only.
const SAME_PAGES: f64 = 1e-6;
/// Least number of commits that extend the log, and that do not, needed to compare them.
const ENOUGH: usize = 20;

/// Such checkpoints as the recording shows them.
pub(crate) struct Checkpoints<'a> {
    wal: Wal<'a>,
    /// All but the scripts of their syncs.
    rules: CheckpointRules,
    /// Commits before which the log's file was recreated.
    anew: Vec<usize>,
    /// Of each thread: start and end of each checkpoint or restart of the log.
    spans: BTreeMap<u32, Vec<(u64, u64)>>,
    /// The number of each commit, by thread and end.
    commits: BTreeMap<(u32, u64), usize>,
}

impl<'a> Checkpoints<'a> {
    /// None if no pages were moved.
    pub(crate) fn find(view: &View<'a>) -> Option<Self> {
        let log = write_ahead_log(view)?;
        let after_pages = log.checkpoint_pages(&view.recording.about.settings);
        let wal = Wal::new(view, log);
        if after_pages == 0 || wal.moves.iter().all(|one| one.pages.is_empty()) {
            return None;
        }
        let bursts = view.recording.about.bursts.iter();
        let (page_ns, fixed_ns) = cost(view, &wal);
        let mut rules = CheckpointRules {
            after_pages,
            page_sectors: (wal.page_bytes / SECTOR_BYTES) as u32,
            frame_bytes: wal.frame_bytes() as u32,
            header_bytes: wal.header_bytes as u32,
            pages: wal_pages::pages(&wal, bursts.map(|burst| burst.start_ns)),
            page_ns: page_ns as u32,
            fixed_ns: fixed_ns as u32,
            ..CheckpointRules::default()
        };
        let anew = set_growth(view, &wal, &mut rules);
        let numbered = wal.written.iter().enumerate();
        let commits = numbered.map(|(number, one)| ((one.thread, one.end_ns), number));
        Some(Self {
            commits: commits.collect(),
            spans: spans(&wal),
            anew,
            rules,
            wal,
        })
    }

    /// The steps of a commit of a thread that ended at that instant.
    pub(crate) fn commit(&self, thread: u32, end_ns: u64) -> Vec<Step> {
        let number = self.commits.get(&(thread, end_ns)).copied();
        let count = number.map_or(0, |number| self.wal.written[number].frames.len() as u32);
        let size_bytes = u64::from(count) * self.wal.frame_bytes();
        let size_bytes = u32::try_from(size_bytes).unwrap_or(u32::MAX).max(1);
        let anew = number.is_some_and(|number| self.anew.binary_search(&number).is_ok());
        let begin = anew.then_some(Step::NewLogFile).into_iter();
        let append = [Step::Frames { count }, Step::Append { size_bytes }];
        let commit = [Step::Commit, Step::Checkpoint];
        begin.chain(append).chain(commit).collect()
    }

    /// The end of the left-out span that contains an instant.
    pub(crate) fn left_out(&self, thread: u32, time_ns: u64) -> Option<u64> {
        let spans = self.spans.get(&thread)?;
        let after = spans.partition_point(|span| span.0 <= time_ns);
        let span = spans[..after].last()?;
        (time_ns < span.1).then_some(span.1)
    }

    /// The rules; adds the scripts of their syncs to those of all syncs.
    pub(crate) fn rules(&self, view: &View<'_>, syncs: &mut Syncs) -> CheckpointRules {
        let log_script = syncs.add(assumed(false));
        let header_script = syncs.add(SyncScript {
            writes: vec![(0, 8)],
            ..assumed(false)
        });
        CheckpointRules {
            log_script,
            header_script,
            scripts: data_scripts(view, &self.wal, syncs),
            ..self.rules.clone()
        }
    }
}

/// Device requests of the data flushes, by the number of pages moved.
fn data_scripts(view: &View<'_>, wal: &Wal<'_>, syncs: &mut Syncs) -> Vec<(u32, u32)> {
    let mut scripts = Vec::new();
    for one in &wal.moves {
        if let Some(call) = one.flush
            && let Step::Sync { script, .. } = syncs.sync(view, Role::Data, call)
        {
            syncs.scripts[script as usize].writes.clear();
            scripts.push((one.pages.len() as u32, script));
        }
    }
    if scripts.is_empty() {
        scripts.push((0, syncs.add(assumed(false))));
    }
    scripts.sort_unstable();
    scripts
}

/// Processor time per page, and per checkpoint without its pages; for warm threads. A straight line fitted to the
/// relative errors of all checkpoints seen: a flush costs more the more pages it writes.
fn cost(rows: &Rows<'_>, wal: &Wal<'_>) -> (f64, f64) {
    let moves = wal.moves.iter();
    let whole = moves.filter(|one| one.flush.is_some() && !one.pages.is_empty());
    let points: Vec<(f64, f64)> = whole
        .map(|one| {
            let moved_ns = rows.on_core_ns(one.thread, one.start_ns, one.end_ns);
            (one.pages.len() as f64, (moved_ns as f64).max(1.0))
        })
        .collect();
    let weight = |ns: f64| ns.powi(-2);
    let (mut all, mut pages, mut ns) = (0.0, 0.0, 0.0);
    for point in &points {
        let weight = weight(point.1);
        all += weight;
        pages += weight * point.0;
        ns += weight * point.1;
    }
    let (mean_pages, mean_ns) = match all > 0.0 {
        true => (pages / all, ns / all),
        false => (0.0, 0.0),
    };
    let (mut with, mut alone) = (0.0, 0.0);
    for (pages, ns) in points {
        with += weight(ns) * (pages - mean_pages) * (ns - mean_ns);
        alone += weight(ns) * (pages - mean_pages).powi(2);
    }
    let most_ns = mean_ns / mean_pages.max(1.0);
    // If all moved the same number of pages, the slope of the line is undefined.
    let differ = alone > SAME_PAGES * all * mean_pages.powi(2);
    let page_ns = if differ { with / alone } else { most_ns };
    let page_ns = page_ns.clamp(0.0, most_ns);
    (page_ns, mean_ns - page_ns * mean_pages)
}

fn spans(wal: &Wal<'_>) -> BTreeMap<u32, Vec<(u64, u64)>> {
    let mut spans: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    let moves = wal.moves.iter();
    let moves = moves.map(|one| (one.thread, one.start_ns, one.end_ns));
    for (thread, start_ns, end_ns) in moves.chain(wal.headers.iter().copied()) {
        spans.entry(thread).or_default().push((start_ns, end_ns));
    }
    spans.values_mut().for_each(|spans| spans.sort_unstable());
    spans
}

/// Sets the growth of the log's file and its cost; returns the commits before which the file was recreated. A commit
/// within the file's length changes only its pages; a commit that extends the file makes the file system allocate
/// blocks and write its journal.
fn set_growth(rows: &Rows<'_>, wal: &Wal<'_>, rules: &mut CheckpointRules) -> Vec<usize> {
    let (growing, plain): (Vec<&LoggedCommit>, Vec<&LoggedCommit>) =
        wal.written.iter().partition(|commit| commit.grew);
    let share = growing.len() as f64 / wal.written.len().max(1) as f64;
    let grew = share > WAL_GROWING_SHARE.get();
    let known = grew && growing.len().min(plain.len()) >= ENOUGH;
    let on_top_ns = |time_ns: &dyn Fn(&LoggedCommit) -> u64, usual_ns: f64| {
        let at_median_ns = |commits: &[&LoggedCommit]| {
            let times_ns = commits.iter().map(|commit| time_ns(commit));
            median(times_ns.collect()).unwrap_or(0) as f64
        };
        match known {
            true => (at_median_ns(&growing) - at_median_ns(&plain)).max(0.0),
            false => usual_ns,
        }
    };
    let flush_ns = |commit: &LoggedCommit| {
        let (from_ns, to_ns) = commit.flush_ns;
        rows.on_core_ns(commit.thread, from_ns, to_ns)
    };
    let frame_ns = |commit: &LoggedCommit| commit.write_ns / commit.frames.len().max(1) as u64;
    rules.growing_ns = on_top_ns(&flush_ns, WAL_GROWING_NS.get()) as u32;
    rules.growing_frame_ns = on_top_ns(&frame_ns, WAL_FRAME_NS.get()) as u32;
    let files = rows.recording.files.iter();
    let logs = files.filter(|file| file.role == Some(Role::Log));
    rules.room_bytes = logs.map(|file| file.size_bytes).max().unwrap_or(0);
    if !grew {
        return Vec::new();
    }
    rules.growing_share = share;
    let (anew, room_bytes) = room(wal);
    rules.room_bytes = room_bytes.unwrap_or(rules.room_bytes);
    anew
}

/// Commits before which the log's file was recreated, and its initial length, if it grew: a commit within it changes
/// nothing in the file system's journal.
fn room(wal: &Wal<'_>) -> (Vec<usize>, Option<u64>) {
    let bytes = |frames: u64| {
        let all = frames.saturating_mul(wal.frame_bytes());
        wal.header_bytes.saturating_add(all)
    };
    let (mut anew, mut room, mut in_place) = (Vec::new(), None::<(u64, u64)>, 0);
    for (number, commit) in wal.written.iter().enumerate() {
        let frames = || commit.frames.iter().copied();
        let Some((first, last)) = frames().min().zip(frames().max()) else {
            continue;
        };
        let end = bytes(last);
        match &mut room {
            None if commit.grew => {
                let before = if commit.began { 0 } else { bytes(first - 1) };
                room = Some((before.max(in_place), end));
            }
            None => in_place = in_place.max(end),
            Some((_, room)) if commit.grew && commit.began && end <= *room => {
                anew.push(number);
                *room = end;
            }
            Some((_, room)) => *room = end.max(*room),
        }
    }
    (anew, room.map(|room| room.0))
}
