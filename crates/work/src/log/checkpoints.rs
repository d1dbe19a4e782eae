//! Checkpoints triggered by pages: a commit that finds enough pages in the log moves them to their places.
//! The moved pages depend on the changes since the last checkpoint, so recorded checkpoints are left out of
//! their sessions' turns and kept as rules (`wal.rs` says which engine's).

use std::collections::BTreeMap;

use tierwise_recording::Role;

use crate::log::flushes::write_ahead_log;
use crate::log::wal::Wal;
use crate::log::wal_growth::LogGrowth;
use crate::log::wal_pages;
use crate::rows::SECTOR_BYTES;
use crate::storage::sync_scripts::assumed;
use crate::storage::syncs::Syncs;
use crate::timeline::segments::Segment;
use crate::view::View;
use crate::{CheckpointRules, Step, SyncScript};

/// Page counts that differ by less than a thousandth are equal: they differ by rounding only.
const SAME_PAGES: f64 = 1e-6;

/// Such checkpoints as the recording shows them.
pub(crate) struct Checkpoints<'a> {
    wal: Wal<'a>,
    /// Pages in the log that trigger a checkpoint.
    after_pages: u32,
    /// First sectors of the pages of all commits.
    pages: Vec<u64>,
    /// Of each thread: start and end of each checkpoint or restart of the log.
    spans: BTreeMap<u32, Vec<(u64, u64)>>,
    /// The number of each commit, by thread and end.
    commits: BTreeMap<(u32, u64), usize>,
    growth: LogGrowth,
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
        let bursts = &view.recording.about.bursts;
        let begins: Vec<u64> = bursts.iter().map(|burst| burst.start_ns).collect();
        let pages = wal_pages::pages(&wal, &begins);
        let numbered = wal.written.iter().enumerate();
        let files = view.recording.files.iter();
        let logs = files.filter(|file| file.role == Some(Role::Log));
        let log_bytes = logs.map(|file| file.size_bytes).max().unwrap_or(0);
        let growth = LogGrowth::new(view, &wal, log_bytes);
        Some(Self {
            commits: numbered
                .map(|(number, commit)| ((commit.thread, commit.end_ns), number))
                .collect(),
            spans: spans(&wal),
            after_pages,
            pages,
            wal,
            growth,
        })
    }

    /// The steps of a commit of a thread that ended at that instant.
    pub(crate) fn commit(&self, thread: u32, end_ns: u64) -> Vec<Step> {
        let number = self.commits.get(&(thread, end_ns)).copied();
        let count = number.map_or(0, |number| self.wal.written[number].frames.len() as u32);
        let size_bytes = u64::from(count) * self.wal.frame_bytes();
        let anew = number.is_some_and(|number| self.growth.anew.binary_search(&number).is_ok());
        let size_bytes = u32::try_from(size_bytes).unwrap_or(u32::MAX).max(1);
        let frames = Step::Frames { count };
        let commit = [
            frames,
            Step::Append { size_bytes },
            Step::Commit,
            Step::Checkpoint,
        ];
        let begin = anew.then_some(Step::NewLogFile);
        begin.into_iter().chain(commit).collect()
    }

    /// The end of the left-out span that contains an instant.
    pub(crate) fn left_out(&self, thread: u32, time_ns: u64) -> Option<u64> {
        let spans = self.spans.get(&thread)?;
        let after = spans.partition_point(|span| span.0 <= time_ns);
        let span = spans[..after].last()?;
        (time_ns < span.1).then_some(span.1)
    }

    /// The part of a segment of a thread's time that is not left out.
    pub(crate) fn kept_ns(&self, thread: u32, segment: &Segment<'_>) -> u64 {
        let left_out = self.left_out(thread, segment.start_ns);
        let from_ns = left_out.unwrap_or(segment.start_ns);
        segment.end_ns.saturating_sub(from_ns)
    }

    /// The rules; adds the scripts of their syncs to those of all syncs.
    pub(crate) fn rules(&self, view: &View<'_>, syncs: &mut Syncs) -> CheckpointRules {
        let log_script = syncs.add(assumed(false));
        let header_script = syncs.add(SyncScript {
            writes: vec![(0, 8)],
            ..assumed(false)
        });
        let scripts = data_scripts(view, &self.wal, syncs);
        let (page_ns, fixed_ns) = cost(view, &self.wal);
        CheckpointRules {
            after_pages: self.after_pages,
            page_sectors: (self.wal.page_bytes / SECTOR_BYTES) as u32,
            frame_bytes: self.wal.frame_bytes() as u32,
            header_bytes: self.wal.header_bytes as u32,
            room_bytes: self.growth.room_bytes,
            growing_ns: self.growth.cpu_ns as u32,
            growing_frame_ns: self.growth.frame_ns as u32,
            growing_share: self.growth.share,
            pages: self.pages.clone(),
            page_ns: page_ns as u32,
            fixed_ns: fixed_ns as u32,
            log_script,
            header_script,
            scripts,
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

/// Processor time per page, and per checkpoint without its pages; for warm threads. A straight line fitted to the relative errors of all checkpoints seen: a flush costs more the
/// more pages it writes.
fn cost(view: &View<'_>, wal: &Wal<'_>) -> (f64, f64) {
    let moves = wal.moves.iter();
    let whole = moves.filter(|one| one.flush.is_some() && !one.pages.is_empty());
    let points: Vec<(f64, f64)> = whole
        .map(|one| {
            let moved_ns = view.on_core_ns(one.thread, one.start_ns, one.end_ns);
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
