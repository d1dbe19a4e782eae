//! The work itself, as plain values: what a run requires of a machine.
//!
//! Nothing here depends on how work is extracted from a recording.

pub(crate) mod mechanism;
pub(crate) mod work;

use tierwise_recording::Role;

// The steps of a session, in order.

/// A range of sectors: role of the file, first sector in the role's own space, length.
pub(crate) type SectorRange = (Role, u64, u32);

/// One action of a session. Times are of the recorded processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Runs on a core.
    Cpu {
        /// Time on the core.
        time_ns: u32,
        /// Whether the client's thread, not the server's, ran.
        client: bool,
    },
    /// Waits outside of the recorded threads: for think time, the network, or a timer.
    Delay(Delay),
    /// Reuse distances of the cached reads, reads and read-ahead that follow in the turn. Unknown where a turn begins.
    Reuse(ReadReuse),
    /// Reads pages of a file that the page cache held.
    CachedRead {
        /// Role of the file.
        role: Role,
        /// Sector in the role's own space.
        sector: u64,
        /// Length.
        sectors: u32,
    },
    /// Reads from the device, and waits.
    Read {
        /// Role of the file.
        role: Role,
        /// Sector in the role's own space.
        sector: u64,
        /// Length.
        sectors: u32,
    },
    /// Writes past the page cache, and waits.
    WriteThrough {
        /// Role of the file.
        role: Role,
        /// Sector in the role's own space.
        sector: u64,
        /// Length.
        sectors: u32,
    },
    /// Writes into the page cache; reaches the device later, or at a sync.
    Write {
        /// Role of the file.
        role: Role,
        /// Sector in the role's own space.
        sector: u64,
        /// Length.
        sectors: u32,
    },
    /// Waits until all that was written to files of this role is durable; not a commit.
    Sync {
        /// Role of the files.
        role: Role,
        /// Device requests of the sync: index in [`Work::scripts`](crate::Work::scripts).
        script: u32,
    },
    /// Submits dirty pages to the device and continues, unless too many are under way: `sync_file_range`.
    WriteBack {
        /// Role of the file.
        role: Role,
        /// Sector in the role's own space.
        sector: u64,
        /// Length.
        sectors: u32,
    },
    /// Submits a request to the device and continues: read-ahead, io_uring, aio. Later reads of these sectors
    /// wait for requests under way.
    Submit {
        /// Role of the file.
        role: Role,
        /// Sector in the role's own space.
        sector: u64,
        /// Length.
        sectors: u32,
        /// Whether it writes.
        write: bool,
    },
    /// Waits until all requests that this session submitted are complete.
    Drain,
    /// Pages of a deleted or truncated file: those not yet written will never be.
    Forget {
        /// Role of the file.
        role: Role,
        /// Sector in the role's own space.
        sector: u64,
        /// Length.
        sectors: u32,
    },
    /// Appends to the log's buffer.
    Append {
        /// Bytes.
        size_bytes: u32,
    },
    /// Waits until the log is durable up to this session's last append; at once if it has appended nothing.
    Commit,
    /// Waits until the log is durable further than at this session's last such step: the second copy is made
    /// of the added part.
    AwaitLog,
    /// The second copy is durable up to the log's position at the last [`Step::AwaitLog`]: commits that wait
    /// for both continue.
    Acknowledge,
    /// Takes one key of a hot lock. Keeps it until the session's next commit (its end or its begin, see
    /// [`crate::HotLock::over_commit`]) or the end of a turn that ends a transaction.
    Lock {
        /// Index in [`Work::locks`](crate::Work::locks).
        lock: u16,
    },
    /// Wakes sessions that await this number.
    Signal {
        /// Unique in the work.
        number: u32,
    },
    /// Waits for another session's signal: a recorded dependency that no rule explains.
    Await {
        /// The signal's number.
        number: u32,
    },
}

impl Step {
    pub(crate) fn read((role, sector, sectors): SectorRange) -> Self {
        Self::Read {
            role,
            sector,
            sectors,
        }
    }

    pub(crate) fn cached_read((role, sector, sectors): SectorRange) -> Self {
        Self::CachedRead {
            role,
            sector,
            sectors,
        }
    }

    pub(crate) fn submit((role, sector, sectors): SectorRange, write: bool) -> Self {
        Self::Submit {
            role,
            sector,
            sectors,
            write,
        }
    }

    /// Steps that run for a time on a core.
    pub(crate) fn cpu(time_ns: u64, client: bool) -> impl Iterator<Item = Self> {
        let mut left_ns = time_ns;
        std::iter::from_fn(move || {
            let time_ns = u32::try_from(left_ns).unwrap_or(u32::MAX);
            left_ns -= u64::from(time_ns);
            (time_ns > 0).then_some(Self::Cpu { time_ns, client })
        })
    }
}

/// Time that passes independently of the devices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delay {
    /// How long.
    pub time_ns: u64,
    /// Whether it is the engine's own timer (busy handler, delay) rather than the client.
    pub timer: bool,
}

// Reuse distances: how many other pages were used between two uses of a page.
//
// The share of reads beyond each distance is a curve, which says what reads of unknown reuse are likely to be.
// Beyond the longest observed distance it is assumed to fall in a straight line to 0 where all pages are counted.
// This is exact where each page is equally likely: of N pages, each new one of the m seen so far is the page itself
// with chance 1/(N − m), so that (N − x)/(N − m) of those beyond m are beyond x.

/// Share of reads whose distances are left out of the shortest one.
const SHORTEST_SHARE: f64 = 0.02;

/// What reads beyond the longest observed distance are taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnobservedReads {
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
    pub unknown: Vec<(ReuseDistanceClass, u64)>,
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
        sector_pages(class.saturating_sub(1))
    }

    /// The share of reads with unknown reuse whose distance is below this many pages, of those at or above `from`.
    #[must_use]
    pub fn unknown_within(&self, pages: f64, from: f64, unobserved: UnobservedReads) -> f64 {
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
    pub fn beyond(&self, pages: f64, unobserved: UnobservedReads) -> f64 {
        if pages >= self.pages as f64 {
            return 0.0;
        }
        let Some((last, observed)) = self.last() else {
            return self.unobserved(1.0, 0.0, pages, unobserved);
        };
        if pages >= observed {
            return self.unobserved(self.beyond[last], observed, pages, unobserved);
        }
        let class = usize::from(ReuseDistanceClass::after(pages as u64).class());
        let (from, to) = (class_start_pages(class), class_start_pages(class + 1));
        let part = ((pages - from) / (to - from).max(1.0)).clamp(0.0, 1.0);
        let shares = (self.share(class), self.share(class + 1));
        shares.0 + (shares.1 - shares.0) * part
    }

    fn last(&self) -> Option<(usize, f64)> {
        let last = self.beyond.len().checked_sub(1)?;
        Some((last, class_start_pages(last).min(self.pages as f64)))
    }

    fn share(&self, class: usize) -> f64 {
        self.beyond
            .get(class)
            .or(self.beyond.last())
            .copied()
            .unwrap_or(1.0)
    }

    fn unobserved(
        &self,
        share: f64,
        observed: f64,
        pages: f64,
        unobserved: UnobservedReads,
    ) -> f64 {
        let all = self.pages as f64;
        match unobserved {
            UnobservedReads::Even if all > observed => share * (all - pages) / (all - observed),
            UnobservedReads::Near if pages > observed => 0.0,
            _ => share,
        }
    }
}

fn sector_pages(class: usize) -> Option<u64> {
    u8::try_from(class)
        .ok()
        .and_then(|class| ReuseDistanceClass::of_class(class).pages())
}

/// The first distance of a class, in pages.
fn class_start_pages(class: usize) -> f64 {
    sector_pages(class).map_or(0.0, |pages| pages as f64)
}

/// The reuse of what a call reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadReuse {
    /// Among all uses of pages in the page cache.
    pub cache: ReuseDistanceClass,
    /// Among the calls that fill the engine's own buffer; never for others.
    pub buffer: ReuseDistanceClass,
}

impl ReadReuse {
    /// Of a read that no buffer answers.
    #[must_use]
    pub fn cached(cache: ReuseDistanceClass) -> Self {
        Self {
            cache,
            buffer: ReuseDistanceClass::NEVER,
        }
    }
}

/// Classes per doubling: sizes are resolved to 9 %.
const PER_DOUBLING: f64 = 8.0;

/// How many other pages were used since a page's last use, in classes of 9 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReuseDistanceClass(pub(crate) u8);

impl ReuseDistanceClass {
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
