//! What becomes of unflushed writes when the power goes.

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
    /// Nothing is kept without a seed; with one, a subset that it decides.
    pub fn new(keep_random: Option<u64>) -> Self {
        keep_random.map_or(Self::Lost, |seed| Self::Random(SplitMix(seed)))
    }

    /// Draws for the next write: a drive has written it, has not, or was about to, each one time in three.
    pub fn of_write(&mut self) -> WriteFate {
        match self {
            Self::Lost => WriteFate::Lost,
            Self::Random(random) => match random.next() % 3 {
                0 => WriteFate::Lost,
                1 => WriteFate::Kept,
                _ => WriteFate::Torn,
            },
        }
    }

    /// Draws for the next sector of a write.
    pub fn keeps_sector(&mut self, write: WriteFate) -> bool {
        match (write, self) {
            (WriteFate::Torn, Self::Random(random)) => random.next() & 1 == 1,
            (WriteFate::Kept, _) => true,
            _ => false,
        }
    }
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): good bits from any seed.
pub(crate) struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }
}
