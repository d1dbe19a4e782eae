//! The part of a chunk that a write replaces.

/// The part of a chunk that a write replaces: from offset `start` to offset `end`; empty if they are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Touched {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Whether some sectors in between are not replaced. They are written again with the data that was read.
    pub(super) holed: bool,
}

impl Touched {
    pub(super) fn is_nothing(&self) -> bool {
        self.start == self.end
    }

    /// Adds a stretch that does not lie before the others.
    pub(super) fn add(&mut self, start: u64, end: u64) {
        if self.is_nothing() {
            *self = Self {
                start,
                end,
                holed: false,
            };
        } else {
            self.holed |= start > self.end;
            self.end = end;
        }
    }
}
