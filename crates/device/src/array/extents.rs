//! The sectors of each member that one task covers.

/// Consecutive sectors of one lane: a member, or a group of members that hold the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) lane: usize,
    pub(super) start: u64,
    pub(super) end: u64,
}

/// Extents in order of address. An extent that continues its lane's last one is joined with it, so that a
/// long request becomes few commands.
#[derive(Debug)]
pub(super) struct Extents(Vec<Extent>);

impl Extents {
    /// Reserves memory for the extents of usual requests over this number of lanes.
    pub(super) fn for_lanes(lanes: usize) -> Self {
        Self(Vec::with_capacity(64 + 4 * lanes))
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn add(&mut self, lane: usize, start: u64, end: u64) {
        match self.0.iter_mut().rev().find(|extent| extent.lane == lane) {
            Some(last) if last.end == start => last.end = end,
            _ if start < end => self.0.push(Extent { lane, start, end }),
            _ => {}
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, index: usize) -> Extent {
        self.0[index]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Extent> {
        self.0.iter()
    }
}
