//! Reuse distances: how many other pages were used between two uses of a page.
//!
//! The share of reads beyond each distance is a curve, which says what reads of unknown reuse are likely to be.
//! Beyond the longest observed distance it is assumed to fall in a straight line to 0 where all pages are counted.
//! This is exact where each page is equally likely: of N pages, each new one of the m seen so far is the page itself
//! with chance 1/(N − m), so that (N − x)/(N − m) of those beyond m are beyond x.

/// Share of reads whose distances are left out of the shortest one.
const SHORTEST_SHARE: f64 = 0.02;

/// What reads beyond the longest observed distance are taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unobserved {
    /// Spread evenly over the other pages.
    Even,
    /// As near as can be.
    Near,
    /// As far as can be.
    Far,
}

/// The share of reads by their reuse distance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReuseCurve {
    /// Share of reads with at least the pages of this class, up to the last observed class.
    pub beyond: Vec<f64>,
    /// Reads of unknown reuse, by the class that their distance is at least of.
    pub unknown: Vec<(Reuse, u64)>,
    /// Pages of all files in question.
    pub pages: u64,
}

impl ReuseCurve {
    /// The shortest distance, but for that of a few reads, in pages; none if it was not observed.
    #[must_use]
    pub fn shortest_pages(&self) -> Option<u64> {
        let class = self
            .beyond
            .iter()
            .position(|share| 1.0 - share >= SHORTEST_SHARE)?;
        pages_of(class.saturating_sub(1))
    }

    /// The share of reads with unknown reuse whose distance is below this many pages, of those at or above `from`.
    #[must_use]
    pub fn unknown_within(&self, pages: f64, from: f64, unobserved: Unobserved) -> f64 {
        let (mut within, mut all) = (0.0, 0.0);
        for &(least, count) in &self.unknown {
            let least = least.pages().unwrap_or(0) as f64;
            let from = self.beyond(least.max(from), unobserved);
            let beyond = self.beyond(least.max(pages), unobserved);
            if from > 0.0 {
                within += count as f64 * (1.0 - beyond / from);
            } else {
                within += count as f64;
            }
            all += count as f64;
        }
        if all > 0.0 {
            (within / all).clamp(0.0, 1.0)
        } else {
            0.0
        }
    }

    /// The share of reads whose distance is at least this many pages.
    #[must_use]
    pub fn beyond(&self, pages: f64, unobserved: Unobserved) -> f64 {
        if pages >= self.pages as f64 {
            return 0.0;
        }
        let Some((last, observed)) = self.last() else {
            return self.unobserved(1.0, 0.0, pages, unobserved);
        };
        if pages >= observed {
            return self.unobserved(self.beyond[last], observed, pages, unobserved);
        }
        let class = usize::from(Reuse::after(pages as u64).class());
        let (from, to) = (start_of(class), start_of(class + 1));
        let part = ((pages - from) / (to - from).max(1.0)).clamp(0.0, 1.0);
        let shares = (self.share(class), self.share(class + 1));
        shares.0 + (shares.1 - shares.0) * part
    }

    fn last(&self) -> Option<(usize, f64)> {
        let last = self.beyond.len().checked_sub(1)?;
        Some((last, start_of(last).min(self.pages as f64)))
    }

    fn share(&self, class: usize) -> f64 {
        self.beyond
            .get(class)
            .or(self.beyond.last())
            .copied()
            .unwrap_or(1.0)
    }

    fn unobserved(&self, share: f64, observed: f64, pages: f64, unobserved: Unobserved) -> f64 {
        let all = self.pages as f64;
        match unobserved {
            Unobserved::Even if all > observed => share * (all - pages) / (all - observed),
            Unobserved::Near if pages > observed => 0.0,
            _ => share,
        }
    }
}

fn pages_of(class: usize) -> Option<u64> {
    u8::try_from(class)
        .ok()
        .and_then(|class| Reuse::of_class(class).pages())
}

/// The first distance of a class, in pages.
fn start_of(class: usize) -> f64 {
    pages_of(class).map_or(0.0, |pages| pages as f64)
}

/// The reuse of what a call reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadReuse {
    /// Among all uses of pages in the page cache.
    pub cache: Reuse,
    /// Among the calls that fill the engine's own buffer; never for others.
    pub buffer: Reuse,
}

impl ReadReuse {
    /// Of a read that no buffer answers.
    #[must_use]
    pub fn cached(cache: Reuse) -> Self {
        Self {
            cache,
            buffer: Reuse::NEVER,
        }
    }
}

/// Classes per doubling: sizes are resolved to 9 %.
const PER_DOUBLING: f64 = 8.0;

/// How many other pages were used since a page's last use, in classes of 9 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reuse(pub(crate) u8);

impl Reuse {
    /// The recording shows no earlier use.
    pub const UNKNOWN: Self = Self(0);
    /// No cache answers it: its first use since caches were empty, or a use that bypasses the page cache.
    pub const NEVER: Self = Self(u8::MAX);

    /// After this many other pages.
    #[must_use]
    pub fn after(pages: u64) -> Self {
        let class = (pages as f64 + 1.0).log2() * PER_DOUBLING;
        Self(1 + class.min(253.0) as u8)
    }

    pub(crate) fn of_class(class: u8) -> Self {
        Self(class)
    }

    pub(crate) fn class(self) -> u8 {
        self.0
    }

    /// The smallest number of other pages in its class, if it is known.
    #[must_use]
    pub fn pages(self) -> Option<u64> {
        match self {
            Self::UNKNOWN => None,
            Self::NEVER => Some(u64::MAX),
            Self(class) => Some((f64::from(class - 1) / PER_DOUBLING).exp2().ceil() as u64 - 1),
        }
    }
}
