//! Infers the page of each log frame.
//!
//! A checkpoint shows the page of each frame that it moved. A skipped frame held a page with a later frame:
//! one of those moved, more likely one that changes often. The age of a page's last frame at the checkpoint's
//! end estimates how often it changes: for random changes, the mean time since the last change equals the
//! mean time between changes. Frames that no recorded checkpoint reached hold pages as the others do.

use std::collections::BTreeMap;

use crate::constants::WAL_PRIOR_FRAMES;
use crate::log::wal::{PageMove, Wal};

/// Attempts to find a page that a commit does not have yet.
const TRIES: usize = 8;

/// A frame in the current log: the position of its page in the list, and first and end of those of its commit.
type FramePlace = (usize, (usize, usize));

/// First sectors of the pages of all commits' frames, in the data's own space and in order. `begins`: starts
/// of bursts, before which nothing is known.
pub(crate) fn pages(wal: &Wal<'_>, begins: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut search = PageSearch {
        known: Vec::new(),
        log: BTreeMap::new(),
        moved: None,
        often: often(wal),
        drawn: 0,
    };
    let mut moves = wal.moves.iter().peekable();
    let mut begins = begins.peekable();
    for commit in &wal.written {
        while let Some(one) = moves.next_if(|one| one.end_ns <= commit.end_ns) {
            search.take(one);
        }
        let mut anew = false;
        while begins.next_if(|&begin| begin < commit.end_ns).is_some() {
            anew = true;
        }
        if anew || commit.began {
            search.log.clear();
            search.moved = commit.began.then_some(0);
        }
        search.add(&commit.frames);
    }
    moves.for_each(|one| search.take(one));
    search.finish()
}

struct PageSearch {
    /// Known pages of all frames.
    known: Vec<Option<u64>>,
    /// The current contents of the log.
    log: BTreeMap<u64, FramePlace>,
    /// Pages up to this frame have been moved.
    moved: Option<u64>,
    /// How often each page changes.
    often: BTreeMap<u64, f64>,
    drawn: u64,
}

impl PageSearch {
    fn add(&mut self, frames: &[u64]) {
        let first = self.known.len();
        let commit = (first, first + frames.len());
        for (at, frame) in frames.iter().enumerate() {
            self.log.insert(*frame, (first + at, commit));
            self.known.push(None);
        }
    }

    /// Sets the known pages of moved frames, and chooses the pages of skipped frames among them.
    fn take(&mut self, one: &PageMove<'_>) {
        for (frame, sector) in &one.pages {
            if let Some(place) = self.log.get(frame) {
                self.known[place.0] = Some(*sector);
            }
        }
        let Some(last) = one.pages.iter().map(|page| page.0).max() else {
            return;
        };
        let from = self.moved.replace(last).unwrap_or(0).min(last) + 1;
        if from > last {
            return;
        }
        let passed = self.log.range(from..=last);
        let passed: Vec<(u64, FramePlace)> = passed
            .filter(|(_, place)| self.known[place.0].is_none())
            .map(|(frame, place)| (*frame, *place))
            .collect();
        let choice = Choice::new(one, &self.often);
        for (frame, (at, (first, end))) in passed {
            for _ in 0..TRIES {
                let page = choice.later_than(frame, self.draw());
                if page.is_some() && !self.known[first..end].contains(&page) {
                    self.known[at] = page;
                    break;
                }
            }
        }
    }

    /// A uniform random number between 0 and 1, by SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
    fn draw(&mut self) -> f64 {
        self.drawn = self.drawn.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.drawn;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// All pages; those of frames that no checkpoint reached are any of the others.
    fn finish(mut self) -> Vec<u64> {
        let known = std::mem::take(&mut self.known);
        let all: Vec<u64> = known.iter().copied().flatten().collect();
        let mut any = || {
            let at = (self.draw() * all.len() as f64) as usize;
            all.get(at).copied().unwrap_or(0)
        };
        let known = known.into_iter();
        known.map(|page| page.unwrap_or_else(&mut any)).collect()
    }
}

/// The pages of a move, last first: frame, first sector, and running sum of the pages' change rates.
struct Choice(Vec<(u64, u64, f64)>);

impl Choice {
    fn new(one: &PageMove<'_>, often: &BTreeMap<u64, f64>) -> Self {
        let mut pages = one.pages.clone();
        pages.sort_unstable_by_key(|page| std::cmp::Reverse(page.0));
        let mut sum = 0.0;
        let with_sums = pages.into_iter().map(|(frame, sector)| {
            sum += often.get(&sector).copied().unwrap_or(0.0);
            (frame, sector, sum)
        });
        Self(with_sums.collect())
    }

    /// A random page whose last frame comes after another.
    fn later_than(&self, frame: u64, drawn: f64) -> Option<u64> {
        let later = &self.0[..self.0.partition_point(|page| page.0 > frame)];
        let most = later.last()?.2 * drawn;
        let at = later.partition_point(|page| page.2 <= most);
        later.get(at.min(later.len() - 1)).map(|page| page.1)
    }
}

/// Changes of each page per frame.
fn often(wal: &Wal<'_>) -> BTreeMap<u64, f64> {
    let mut seen: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for one in &wal.moves {
        let last = one.pages.iter().map(|page| page.0).max().unwrap_or(0);
        for (frame, sector) in &one.pages {
            let page = seen.entry(*sector).or_default();
            page.0 += 1.0;
            page.1 += (last - frame) as f64;
        }
    }
    let rate = |(count, gap): (f64, f64)| count / (gap + WAL_PRIOR_FRAMES.get());
    seen.into_iter()
        .map(|(page, seen)| (page, rate(seen)))
        .collect()
}
