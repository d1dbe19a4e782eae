//! The steps of a session, in order.

use tierwise_recording::Role;

use crate::ReadReuse;

/// A range of sectors: role of the file, first sector in the role's own space, length.
pub(crate) type Place = (Role, u64, u32);

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
    pub(crate) fn read((role, sector, sectors): Place) -> Self {
        Self::Read {
            role,
            sector,
            sectors,
        }
    }

    pub(crate) fn cached_read((role, sector, sectors): Place) -> Self {
        Self::CachedRead {
            role,
            sector,
            sectors,
        }
    }

    pub(crate) fn submit((role, sector, sectors): Place, write: bool) -> Self {
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
