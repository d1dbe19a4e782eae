//! Erase blocks by how many of their units are valid, so that the emptiest is found at once.

const NONE: u32 = u32::MAX;

/// Valid counts of all blocks, and the sealed ones in a list for each count.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    valid: Vec<u32>,
    sealed: Vec<bool>,
    next: Vec<u32>,
    previous: Vec<u32>,
    /// First block of the list of each count.
    heads: Vec<u32>,
    /// No sealed block has fewer valid units.
    least: usize,
}

impl Blocks {
    /// `count` empty blocks of `units` each, none sealed.
    pub(super) fn new(count: usize, units: usize) -> Self {
        Self {
            valid: vec![0; count],
            sealed: vec![false; count],
            next: vec![NONE; count],
            previous: vec![NONE; count],
            heads: vec![NONE; units + 1],
            least: units,
        }
    }

    /// Valid units of each sealed block.
    pub(super) fn sealed_counts(&self) -> impl Iterator<Item = u32> {
        let blocks = self.valid.iter().zip(&self.sealed);
        blocks
            .filter(|(_, sealed)| **sealed)
            .map(|(&valid, _)| valid)
    }

    /// Valid units of every block.
    #[cfg(test)]
    pub(super) fn valid_counts(&self) -> &Vec<u32> {
        &self.valid
    }

    /// Counts a unit written to an open block.
    pub(super) fn validate(&mut self, block: u32) {
        self.valid[block as usize] += 1;
    }

    /// Counts a unit of a block that is valid no more.
    pub(super) fn invalidate(&mut self, block: u32) {
        if !self.sealed[block as usize] {
            self.valid[block as usize] -= 1;
            return;
        }
        self.unlink(block);
        self.valid[block as usize] -= 1;
        self.link(block);
    }

    /// Makes a full block one that cleaning may choose.
    pub(super) fn seal(&mut self, block: u32) {
        self.sealed[block as usize] = true;
        self.link(block);
    }

    /// Takes the sealed block with the fewest valid units, and their number.
    ///
    /// # Panics
    /// If no block is sealed.
    pub(super) fn take_emptiest(&mut self) -> (u32, u32) {
        while self.heads[self.least] == NONE {
            self.least += 1;
        }
        let block = self.heads[self.least];
        self.unlink(block);
        self.sealed[block as usize] = false;
        (block, self.least as u32)
    }

    fn link(&mut self, block: u32) {
        let count = self.valid[block as usize] as usize;
        let head = self.heads[count];
        self.next[block as usize] = head;
        self.previous[block as usize] = NONE;
        if head != NONE {
            self.previous[head as usize] = block;
        }
        self.heads[count] = block;
        self.least = self.least.min(count);
    }

    fn unlink(&mut self, block: u32) {
        let (next, previous) = (self.next[block as usize], self.previous[block as usize]);
        if next != NONE {
            self.previous[next as usize] = previous;
        }
        if previous == NONE {
            self.heads[self.valid[block as usize] as usize] = next;
        } else {
            self.next[previous as usize] = next;
        }
    }
}
