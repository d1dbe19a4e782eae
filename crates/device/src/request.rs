//! The words that callers and models share.

/// A point in time or a duration, in nanoseconds.
pub type Nanos = u64;

/// The caller's own name for a request, returned with its completion.
pub type RequestId = u64;

/// Bytes in the sector that `Request::sector` and `Request::sectors` count.
pub const SECTOR_BYTES: u64 = 512;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Transfer from the device.
    Read,
    /// Transfer to the device.
    Write,
    /// Make every write that completed before this request durable. Has no address.
    Flush,
    /// The content of the range is no longer needed.
    Discard,
}

/// One request to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// What to do.
    pub op: Op,
    /// First sector; ignored for a flush.
    pub sector: u64,
    /// Length in sectors; ignored for a flush.
    pub sectors: u32,
    /// Forced unit access: a write that must be on the medium before it completes.
    pub fua: bool,
}

impl Request {
    /// A flush.
    pub const FLUSH: Self = Self::new(Op::Flush, 0, 0);

    /// A request without forced unit access.
    #[inline]
    pub const fn new(op: Op, sector: u64, sectors: u32) -> Self {
        Self {
            op,
            sector,
            sectors,
            fua: false,
        }
    }

    /// The request that a device of `capacity` sectors serves in place of this one. A range that runs past the
    /// end is moved back so that it ends with the last sector; one longer than the device becomes the whole device.
    #[inline]
    pub fn fitted(mut self, capacity: u64) -> Self {
        let sectors = u64::from(self.sectors);
        if sectors > capacity {
            // Fits, because it is less than a length of 32 bits.
            self.sectors = capacity as u32;
            self.sector = 0;
        } else if self.sector > capacity - sectors {
            self.sector = capacity - sectors;
        }
        self
    }

    /// Sectors that it writes.
    pub fn written_sectors(&self) -> u64 {
        if self.op == Op::Write {
            u64::from(self.sectors)
        } else {
            0
        }
    }
}

/// A request that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The name given at submit.
    pub id: RequestId,
    /// When it completed, in nanoseconds of the caller's clock.
    pub at: Nanos,
}

// State that a device keeps between requests: its content, and the sectors written.

/// A state that long use leaves a device in.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Precondition {
    /// As it left the factory, or after a discard of everything.
    #[default]
    Fresh,
    /// Every sector written once, in order.
    Sequential,
    /// Every sector written once, then overwritten at random until cleaning is in its steady state. A volume
    /// has spent its credits.
    Random {
        /// Share of the address space, from its start, that the overwrites fell on, above 0 and up to 1; what
        /// lies behind it is static.
        active_share: f64,
    },
}

/// Sectors written since a device was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrittenSectors {
    /// By requests of the host.
    pub host_sectors: u64,
    /// To the medium, including the device's own writes: cleaning, parity, rebuilding.
    pub medium_sectors: u64,
    /// Erase blocks that were erased.
    pub erases: u64,
}

impl WrittenSectors {
    /// Sectors to the medium for each sector of the host, or `None` before the host wrote any.
    pub fn amplification(&self) -> Option<f64> {
        (self.host_sectors > 0).then(|| self.medium_sectors as f64 / self.host_sectors as f64)
    }
}

impl std::ops::Add for WrittenSectors {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            host_sectors: self.host_sectors + other.host_sectors,
            medium_sectors: self.medium_sectors + other.medium_sectors,
            erases: self.erases + other.erases,
        }
    }
}

impl std::ops::Sub for WrittenSectors {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            host_sectors: self.host_sectors - before.host_sectors,
            medium_sectors: self.medium_sectors - before.medium_sectors,
            erases: self.erases - before.erases,
        }
    }
}
