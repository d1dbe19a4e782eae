//! State that a device keeps between requests: its content, and the sectors written.

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
pub struct Written {
    /// By requests of the host.
    pub host_sectors: u64,
    /// To the medium, including the device's own writes: cleaning, parity, rebuilding.
    pub medium_sectors: u64,
    /// Erase blocks that were erased.
    pub erases: u64,
}

impl Written {
    /// Sectors to the medium for each sector of the host, or `None` before the host wrote any.
    pub fn amplification(&self) -> Option<f64> {
        (self.host_sectors > 0).then(|| self.medium_sectors as f64 / self.host_sectors as f64)
    }
}

impl std::ops::Add for Written {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            host_sectors: self.host_sectors + other.host_sectors,
            medium_sectors: self.medium_sectors + other.medium_sectors,
            erases: self.erases + other.erases,
        }
    }
}

impl std::ops::Sub for Written {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            host_sectors: self.host_sectors - before.host_sectors,
            medium_sectors: self.medium_sectors - before.medium_sectors,
            erases: self.erases - before.erases,
        }
    }
}
