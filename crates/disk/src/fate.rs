//! Which unflushed writes survive when the power goes.

use tierwise_device::random::SplitMix;

/// Draws the fate of each unflushed write, and of each of its sectors.
pub(crate) enum Fate {
    /// All is lost.
    Lost,
    /// Of each write nothing, everything, or a random half of its sectors reaches the medium.
    Random(SplitMix),
}

/// The fate of one write.
#[derive(Clone, Copy)]
pub(crate) enum WriteFate {
    Lost,
    Kept,
    Torn,
}

impl Fate {
    /// Nothing is kept without a seed; a seed decides which subset is kept.
    pub fn new(keep_random: Option<u64>) -> Self {
        keep_random.map_or(Self::Lost, |seed| Self::Random(SplitMix::new(seed)))
    }

    /// Draws for the next write: a drive has written it, has not, or was about to, each one time in three.
    pub fn of_write(&mut self) -> WriteFate {
        match self {
            Self::Lost => WriteFate::Lost,
            Self::Random(random) => match random.draw() % 3 {
                0 => WriteFate::Lost,
                1 => WriteFate::Kept,
                _ => WriteFate::Torn,
            },
        }
    }

    /// Draws for the next sector of a write.
    pub fn keeps_sector(&mut self, write: WriteFate) -> bool {
        match (write, self) {
            (WriteFate::Torn, Self::Random(random)) => random.draw() & 1 == 1,
            (WriteFate::Kept, _) => true,
            _ => false,
        }
    }
}
