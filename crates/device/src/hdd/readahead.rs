//! The read cache: segments of consecutive sectors. One of them grows while the disk is idle.
//!
//! Growth is never simulated sector by sector: its extent is computed on demand.

use super::mechanics::{ArmPosition, DiskMechanics, PassingSectors};
use super::params::{DiskCacheParams, ReadaheadEnd};
use crate::Nanos;
use crate::hdd::geometry::SectorPlace;

/// The head is reading on, behind a request, into a segment.
#[derive(Clone, Copy, Debug)]
struct ReadaheadStream {
    segment: usize,
    /// The track that the head was on when last asked: the stretch from there on.
    from: PassingSectors,
    /// End of the stretch.
    limit: u64,
    /// When the head will have been on the track for a whole turn, and the track's first sector.
    turn: Option<(Nanos, u64)>,
}

/// How the cache can serve a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheLookup {
    /// All sectors are in the buffer.
    Hit,
    /// The head is about to read the rest; all sectors are there at this time.
    Stream(Nanos),
    /// The mechanism must fetch it.
    Miss,
}

/// The sectors read or written lately, and the reading ahead.
#[derive(Debug)]
pub(crate) struct ReadCache {
    segments: CacheSegments,
    segment_sectors: u64,
    readahead_sectors: u64,
    readahead_to: ReadaheadEnd,
    if_sequential: bool,
    on_arrival: bool,
    stream: Option<ReadaheadStream>,
}

impl ReadCache {
    pub(crate) fn new(params: &DiskCacheParams) -> Self {
        Self {
            segments: CacheSegments::new(params.segments),
            segment_sectors: u64::from(params.segment_sectors),
            readahead_sectors: u64::from(params.readahead_sectors),
            readahead_to: params.readahead_to,
            if_sequential: params.readahead_if_sequential,
            on_arrival: params.read_on_arrival,
            stream: None,
        }
    }

    /// Looks for `sector..end` at `now`. What is found becomes the most recently used.
    #[inline]
    pub(crate) fn look_up(
        &mut self,
        now: Nanos,
        ready: Nanos,
        sector: u64,
        end: u64,
        mechanics: &DiskMechanics,
    ) -> CacheLookup {
        self.grow(now, mechanics);
        let Some(index) = self.segments.find(sector) else {
            return CacheLookup::Miss;
        };
        match self.stream {
            Some(stream) if stream.segment == index => {
                self.read_on(stream, ready, sector, end, mechanics)
            }
            _ if end <= self.segments.end(index) => {
                self.segments.touch(index);
                CacheLookup::Hit
            }
            _ => CacheLookup::Miss,
        }
    }

    /// A read in the segment that grows moves the end of the growth on.
    fn read_on(
        &mut self,
        stream: ReadaheadStream,
        now: Nanos,
        sector: u64,
        end: u64,
        mechanics: &DiskMechanics,
    ) -> CacheLookup {
        let have = self.segments.end(stream.segment);
        let wanted = if self.on_arrival {
            track_end(end, mechanics)
        } else {
            self.limit(self.segments.start(stream.segment), end, mechanics)
        };
        let limit = wanted.max(stream.limit);
        let stopped = have == stream.limit && limit > have;
        let stream = if stopped {
            resume_readahead(stream, now, have, mechanics)
        } else {
            stream
        };
        let stream = ReadaheadStream { limit, ..stream };
        self.stream = Some(stream);
        self.segments.touch(stream.segment);
        self.segments
            .extend(stream.segment, have, self.segment_sectors, sector);
        if end <= have {
            return CacheLookup::Hit;
        }
        let (at, _) = pass_sectors_until(end, &stream.from, mechanics);
        CacheLookup::Stream(at)
    }

    /// Where reading ahead ends behind `end`, in a segment that holds what is before it from `first` on.
    fn limit(&self, first: u64, end: u64, mechanics: &DiskMechanics) -> u64 {
        let bound = match self.readahead_to {
            ReadaheadEnd::Segment => mechanics.geometry.capacity(),
            ReadaheadEnd::Track => self.stream_end(first, end, mechanics),
            ReadaheadEnd::Cylinder => mechanics.geometry.cylinder_end(end - 1),
        };
        (end + self.readahead_sectors.min(self.segment_sectors)).min(bound)
    }

    /// End of the track, or of the next one if the segment came from the track before.
    fn stream_end(&self, first: u64, end: u64, mechanics: &DiskMechanics) -> u64 {
        let here = track_end(end, mechanics);
        let place = mechanics.geometry.locate(first);
        if first + place.left_on_track < end && here < mechanics.geometry.capacity() {
            track_end(here + 1, mechanics)
        } else {
            here
        }
    }

    /// Brings the growing segment up to date; returns where the head is.
    #[inline]
    fn grow(&mut self, now: Nanos, mechanics: &DiskMechanics) -> Option<ArmPosition> {
        let stream = self.stream?;
        if now <= stream.from.begin {
            return Some(ArmPosition::from(&stream.from.place));
        }
        let (passed, track) = mechanics.passed(stream.from, stream.limit, now);
        // The next query starts from here, so a long stream is not scanned from its beginning again.
        self.stream = Some(ReadaheadStream {
            from: track,
            ..stream
        });
        let end = self.segments.end(stream.segment).max(passed);
        self.segments
            .extend(stream.segment, end, self.segment_sectors, end);
        if let Some((_, start)) = stream.turn.filter(|&(at, _)| at <= now) {
            self.segments
                .reach_back(stream.segment, start, self.segment_sectors);
        }
        Some(ArmPosition::from(&track.place))
    }

    /// Ends the growth because the head is needed elsewhere; returns where the head is at `now`.
    #[inline]
    pub(crate) fn stop(&mut self, now: Nanos, mechanics: &DiskMechanics) -> Option<ArmPosition> {
        let arm = self.grow(now, mechanics);
        self.stream = None;
        arm
    }

    /// Keeps a read that has been fetched, and what passed before it; the head reads on from its end.
    #[inline]
    pub(crate) fn insert(&mut self, read: &FetchedRead<'_>, mechanics: &DiskMechanics) {
        let end = read.sector + read.sectors;
        let ahead = read.sequential || !self.if_sequential;
        let first = if ahead && self.on_arrival {
            read.sector - read.passed_before(mechanics)
        } else {
            read.sector
        };
        let start = end.saturating_sub(self.segment_sectors).max(first);
        let Some(segment) = self.segments.replace_oldest(start, end) else {
            return;
        };
        if !ahead {
            return;
        }
        let turn = (self.on_arrival && !read.sequential)
            .then(|| read.turn(mechanics))
            .flatten();
        let limit = self.first_limit(read, start, mechanics);
        if limit > end || turn.is_some() {
            let (place, begin) = read.behind(limit > end, mechanics);
            self.stream = Some(ReadaheadStream {
                segment,
                from: PassingSectors {
                    sector: end,
                    place,
                    begin,
                },
                limit: limit.max(end),
                turn,
            });
        }
    }

    /// Where reading ahead ends behind a read: with reading on arrival, where the segment that begins at `start` is
    /// full, at the end of the track, or of the next one for the second of two reads in sequence.
    fn first_limit(&self, read: &FetchedRead<'_>, start: u64, mechanics: &DiskMechanics) -> u64 {
        let end = read.sector + read.sectors;
        if !self.on_arrival {
            return self.limit(read.sector, end, mechanics);
        }
        let here = track_end(end, mechanics);
        let there = if read.sequential && here < mechanics.geometry.capacity() {
            track_end(here + 1, mechanics)
        } else {
            here
        };
        // A read that fills the segment by itself has freed it for later sectors by the time it is sent.
        let kept = if read.sectors < self.segment_sectors {
            start
        } else {
            end
        };
        there.min(kept + self.segment_sectors)
    }

    /// `sector..end` was written from the buffer and stays there.
    #[inline]
    pub(crate) fn keep_written(&mut self, sector: u64, end: u64) {
        let start = end.saturating_sub(self.segment_sectors).max(sector);
        self.segments.replace_oldest(start, end);
    }

    /// Drops `sector..end`: the disk no longer holds what was read there. Ends reading ahead into it, and
    /// then returns where the head is.
    #[inline]
    pub(crate) fn invalidate(
        &mut self,
        now: Nanos,
        sector: u64,
        end: u64,
        mechanics: &DiskMechanics,
    ) -> Option<ArmPosition> {
        let segment = self.stream.map(|stream| stream.segment);
        let arm = segment.and_then(|segment| {
            self.grow(now, mechanics);
            self.segments
                .overlaps(segment, sector, end)
                .then(|| self.stop(now, mechanics))
        });
        self.segments.invalidate(sector, end);
        arm.flatten()
    }
}

/// The stream had come to its end and the head waited there: it must wait for the next sector to pass.
fn resume_readahead(
    stream: ReadaheadStream,
    now: Nanos,
    have: u64,
    mechanics: &DiskMechanics,
) -> ReadaheadStream {
    let (ended, arm) = pass_sectors_until(have, &stream.from, mechanics);
    let place = mechanics.geometry.locate(have);
    ReadaheadStream {
        from: PassingSectors {
            sector: have,
            place,
            begin: mechanics.reach(now.max(ended), arm, &place, false),
        },
        turn: None,
        ..stream
    }
}

/// When the sector before `end` has passed, and where the arm is then.
fn pass_sectors_until(
    end: u64,
    from: &PassingSectors,
    mechanics: &DiskMechanics,
) -> (Nanos, ArmPosition) {
    let sectors = end - from.sector;
    mechanics.pass(from.begin, from.sector, &from.place, sectors, false)
}

/// End of the track that holds the sector before `end`.
fn track_end(end: u64, mechanics: &DiskMechanics) -> u64 {
    end - 1 + mechanics.geometry.locate(end - 1).left_on_track
}

// The buffer's segments: which sectors each holds, and which was used last.

/// Stretches of consecutive sectors; the least recently used is replaced first.
#[derive(Debug)]
pub(crate) struct CacheSegments {
    /// First sector of each; `u64::MAX` while empty, so that no sector lies in it.
    starts: Vec<u64>,
    lengths: Vec<u64>,
    /// Indices, the most recently used first.
    order: Vec<u8>,
}

impl CacheSegments {
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

// A read from the medium, and the other sectors of its track that the head passed.

/// A read that has been fetched from the medium.
pub(crate) struct FetchedRead<'a> {
    pub(crate) sector: u64,
    pub(crate) sectors: u64,
    pub(crate) place: &'a SectorPlace,
    /// When the head came to the track and when it began with the sector.
    pub(crate) arrived: Nanos,
    pub(crate) begin: Nanos,
    /// When it was done, and where the arm was then.
    pub(crate) end: (Nanos, ArmPosition),
    /// Whether it continues the read just before it.
    pub(crate) sequential: bool,
}

impl FetchedRead<'_> {
    /// Sectors of the track before the first one.
    fn before_on_track(&self, mechanics: &DiskMechanics) -> u64 {
        let zone = &mechanics.geometry.zones[self.place.zone as usize];
        zone.track_sectors()
            .saturating_sub(self.place.left_on_track)
            .min(self.sector - zone.first_sector)
    }

    /// Sectors of the track that passed between the head's arrival and the first one.
    pub(crate) fn passed_before(&self, mechanics: &DiskMechanics) -> u64 {
        mechanics
            .sectors_in(self.place.zone, self.begin - self.arrived)
            .min(self.before_on_track(mechanics))
    }

    /// When the whole track will have passed since the head's arrival, and the track's first sector; nothing for
    /// a read of more than one track.
    pub(crate) fn turn(&self, mechanics: &DiskMechanics) -> Option<(Nanos, u64)> {
        (self.sectors <= self.place.left_on_track).then(|| {
            (
                self.arrived + mechanics.turn_ns(),
                self.sector - self.before_on_track(mechanics),
            )
        })
    }

    /// Where the head is after the last sector, and when: at the next sector if it reads on, or else where it
    /// is.
    pub(crate) fn behind(&self, reads_on: bool, mechanics: &DiskMechanics) -> (SectorPlace, Nanos) {
        let (ended, arm) = self.end;
        if !reads_on {
            return (*self.place, ended);
        }
        let place = mechanics
            .geometry
            .after(self.place, self.sector, self.sectors);
        if ArmPosition::from(&place) == arm {
            (place, ended)
        } else {
            (place, mechanics.reach(ended, arm, &place, false))
        }
    }
}
