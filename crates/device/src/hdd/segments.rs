//! The buffer's segments: which sectors each holds, and which was used last.

/// Stretches of consecutive sectors; the least recently used is replaced first.
#[derive(Debug)]
pub(crate) struct Segments {
    /// First sector of each; `u64::MAX` while empty, so that no sector lies in it.
    starts: Vec<u64>,
    lengths: Vec<u64>,
    /// Indices, the most recently used first.
    order: Vec<u8>,
}

impl Segments {
    pub(crate) fn new(count: u32) -> Self {
        Self {
            starts: vec![u64::MAX; count as usize],
            lengths: vec![0; count as usize],
            order: (0..count).map(|index| index as u8).collect(),
        }
    }

    /// The segment that holds `sector` or ends just before it.
    #[inline]
    pub(crate) fn find(&self, sector: u64) -> Option<usize> {
        let pairs = self.starts.iter().zip(&self.lengths);
        let reaches = |(&start, &length): (&u64, &u64)| {
            sector.wrapping_sub(start) <= length && start != u64::MAX
        };
        pairs.map(reaches).position(|reaches| reaches)
    }

    pub(crate) fn start(&self, index: usize) -> u64 {
        self.starts[index]
    }

    pub(crate) fn end(&self, index: usize) -> u64 {
        self.starts[index].wrapping_add(self.lengths[index])
    }

    /// Makes `index` the most recently used.
    pub(crate) fn touch(&mut self, index: usize) {
        if let Some(place) = self
            .order
            .iter()
            .position(|&other| usize::from(other) == index)
        {
            self.order.copy_within(0..place, 1);
            self.order[0] = index as u8;
        }
    }

    /// Puts `start..end` in place of the least recently used; `None` if there are no segments.
    #[inline]
    pub(crate) fn replace_oldest(&mut self, start: u64, end: u64) -> Option<usize> {
        let index = *self.order.last()?;
        self.order.rotate_right(1);
        let index = usize::from(index);
        self.starts[index] = start;
        self.lengths[index] = end - start;
        Some(index)
    }

    /// Lets a segment grow to `end`, dropping its oldest sectors beyond `size`, but none from `needed` on.
    pub(crate) fn extend(&mut self, index: usize, end: u64, size: u64, needed: u64) {
        let start = self.starts[index].max(end.saturating_sub(size).min(needed));
        self.starts[index] = start;
        self.lengths[index] = end - start;
    }

    /// Lets a segment reach back to `start`, as far as `size` allows.
    pub(crate) fn reach_back(&mut self, index: usize, start: u64, size: u64) {
        let end = self.end(index);
        let start = start.max(end.saturating_sub(size)).min(self.starts[index]);
        self.starts[index] = start;
        self.lengths[index] = end - start;
    }

    /// Whether segment `index` holds a sector of `sector..end`.
    pub(crate) fn overlaps(&self, index: usize, sector: u64, end: u64) -> bool {
        self.starts[index] < end && sector < self.end(index)
    }

    /// Removes `sector..end` from every segment; where that splits one, the longer part stays.
    #[inline]
    pub(crate) fn invalidate(&mut self, sector: u64, end: u64) {
        for index in 0..self.starts.len() {
            if self.overlaps(index, sector, end) {
                let (start, stop) = (self.starts[index], self.end(index));
                let (before, behind) = (sector.saturating_sub(start), stop.saturating_sub(end));
                (self.starts[index], self.lengths[index]) = match before.max(behind) {
                    0 => (u64::MAX, 0),
                    length if length == before => (start, before),
                    length => (end, length),
                };
            }
        }
    }
}
