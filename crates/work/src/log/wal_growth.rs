//! Growth of the log's file and its cost: a commit within the file's length changes only its pages; a commit
//! that extends the file makes the file system allocate blocks and write its journal.

use crate::constants::{WAL_FRAME_NS, WAL_GROWING_NS, WAL_GROWING_SHARE};
use crate::log::wal::{LoggedCommit, Wal};
use crate::rows::median;
use crate::view::View;

/// Least number of commits of each kind needed to compare them.
const ENOUGH: usize = 20;

/// Growth of the log's file.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogGrowth {
    /// Commits before which the log's file was recreated.
    pub(crate) anew: Vec<usize>,
    /// Its initial length.
    pub(crate) room_bytes: u64,
    /// Extra processor time of a commit that extends it, and of each of its frames.
    pub(crate) cpu_ns: f64,
    pub(crate) frame_ns: f64,
    /// Share of commits that extended it.
    pub(crate) share: f64,
}

impl LogGrowth {
    /// `most`: final length of the file.
    pub(crate) fn new(view: &View<'_>, wal: &Wal<'_>, most: u64) -> Self {
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
            if known {
                (at_median_ns(&growing) - at_median_ns(&plain)).max(0.0)
            } else {
                usual_ns
            }
        };
        let flush_ns = |commit: &LoggedCommit| {
            let (from_ns, to_ns) = commit.flush_ns;
            view.on_core_ns(commit.thread, from_ns, to_ns)
        };
        let frame_ns = |commit: &LoggedCommit| commit.write_ns / commit.frames.len().max(1) as u64;
        let (anew, room_bytes) = match grew {
            true => room(wal, most),
            false => (Vec::new(), most),
        };
        Self {
            anew,
            room_bytes,
            cpu_ns: on_top_ns(&flush_ns, WAL_GROWING_NS.get()),
            frame_ns: on_top_ns(&frame_ns, WAL_FRAME_NS.get()),
            share: if grew { share } else { 0.0 },
        }
    }
}

/// Commits before which the log's file was recreated, and its initial length: a commit within it changes
/// nothing in the file system's journal. `most`: final length of the file.
fn room(wal: &Wal<'_>, most: u64) -> (Vec<usize>, u64) {
    let bytes = |frames: u64| {
        let all = frames.saturating_mul(wal.frame_bytes());
        wal.header_bytes.saturating_add(all)
    };
    let (mut anew, mut room, mut in_place) = (Vec::new(), None::<(u64, u64)>, 0);
    for (number, commit) in wal.written.iter().enumerate() {
        let Some((first, last)) = ends(commit) else {
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
    (anew, room.map_or(most, |room| room.0))
}

/// The first frame of a commit and its last one.
fn ends(commit: &LoggedCommit) -> Option<(u64, u64)> {
    let frames = || commit.frames.iter().copied();
    frames().min().zip(frames().max())
}
