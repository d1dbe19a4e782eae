//! The read cache: segments of consecutive sectors, one of which grows while the disk is idle.
//!
//! Growth is never simulated sector by sector: how far it has come is worked out when someone asks.

use super::geometry::Place;
use super::mechanics::{Arm, Mechanics};
use super::params::CacheParams;
use crate::Nanos;

/// Sectors `start..end` of the disk, in the buffer.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    start: u64,
    end: u64,
    last_use: u64,
}

/// The head is reading on, behind a request, into a segment.
#[derive(Clone, Copy, Debug)]
struct Stream {
    segment: usize,
    /// First sector of the stretch, where it is and when it began to pass.
    sector: u64,
    place: Place,
    begin: Nanos,
    /// End of the stretch.
    limit: u64,
}

/// What the cache can do for a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// All sectors are in the buffer.
    Hit,
    /// The head is about to read the rest: it has it at this time.
    Stream(Nanos),
    /// The mechanism must fetch it.
    Miss,
}

/// Read segments, least recently used replaced first.
#[derive(Debug)]
pub(crate) struct ReadCache {
    segments: Vec<Segment>,
    segment_sectors: u64,
    readahead_sectors: u64,
    uses: u64,
    stream: Option<Stream>,
}

impl ReadCache {
    pub(crate) fn new(params: &CacheParams) -> Self {
        Self {
            segments: vec![Segment::default(); params.segments as usize],
            segment_sectors: u64::from(params.segment_sectors),
            readahead_sectors: u64::from(params.readahead_sectors),
            uses: 0,
            stream: None,
        }
    }

    /// Looks for `sector..end` at `now`. What is found becomes the most recently used.
    pub(crate) fn look_up(
        &mut self,
        now: Nanos,
        sector: u64,
        end: u64,
        mechanics: &Mechanics,
    ) -> Lookup {
        self.grow(now, mechanics);
        let Some(index) = self
            .segments
            .iter()
            .position(|s| s.start <= sector && sector < s.end + u64::from(s.last_use > 0))
        else {
            return Lookup::Miss;
        };
        let found = self.segments[index];
        match self.stream {
            Some(stream) if stream.segment == index => self.read_on(now, sector, end, mechanics),
            _ if end <= found.end => {
                self.touch(index);
                Lookup::Hit
            }
            _ => Lookup::Miss,
        }
    }

    /// A read in the segment that grows moves the end of the growth on.
    fn read_on(&mut self, now: Nanos, sector: u64, end: u64, mechanics: &Mechanics) -> Lookup {
        let Some(mut stream) = self.stream else {
            return Lookup::Miss;
        };
        let have = self.segments[stream.segment].end;
        let limit = self.limit(end, mechanics).max(stream.limit);
        if have == stream.limit && limit > have {
            stream = self.resume(stream, now, have, mechanics);
        }
        stream.limit = limit;
        self.stream = Some(stream);
        self.touch(stream.segment);
        self.trim(stream.segment, sector);
        if end <= have {
            return Lookup::Hit;
        }
        let sectors = end - stream.sector;
        Lookup::Stream(
            mechanics
                .pass(stream.begin, stream.sector, &stream.place, sectors, false)
                .0,
        )
    }

    /// The stream had come to its end and the head waited there: it must wait for the next sector to pass.
    fn resume(&self, stream: Stream, now: Nanos, have: u64, mechanics: &Mechanics) -> Stream {
        let (_, arm) = mechanics.pass(
            stream.begin,
            stream.sector,
            &stream.place,
            have - stream.sector,
            false,
        );
        let ended = mechanics
            .pass(
                stream.begin,
                stream.sector,
                &stream.place,
                have - stream.sector,
                false,
            )
            .0;
        let place = mechanics.geometry.locate(have);
        Stream {
            sector: have,
            place,
            begin: mechanics.reach(now.max(ended), arm, &place, false),
            ..stream
        }
    }

    fn limit(&self, end: u64, mechanics: &Mechanics) -> u64 {
        (end + self.readahead_sectors).min(mechanics.geometry.capacity())
    }

    /// Drops the oldest sectors of a segment that grew beyond its size, but none from `needed` on.
    fn trim(&mut self, index: usize, needed: u64) {
        let segment = &mut self.segments[index];
        let oldest = segment.end.saturating_sub(self.segment_sectors).min(needed);
        segment.start = segment.start.max(oldest);
    }

    fn touch(&mut self, index: usize) {
        self.uses += 1;
        self.segments[index].last_use = self.uses;
    }

    /// Brings the growing segment up to date.
    fn grow(&mut self, now: Nanos, mechanics: &Mechanics) {
        let Some(stream) = self.stream else { return };
        let segment = &mut self.segments[stream.segment];
        if now <= stream.begin || segment.end == stream.limit {
            return;
        }
        let want = stream.limit - stream.sector;
        let (count, _) = mechanics.passed(stream.begin, stream.sector, stream.place, want, now);
        segment.end = segment.end.max(stream.sector + count);
        let oldest = segment.end.saturating_sub(self.segment_sectors);
        segment.start = segment.start.max(oldest);
    }

    /// Ends the growth because the head is needed elsewhere; returns where the head is at `now`.
    pub(crate) fn stop(&mut self, now: Nanos, mechanics: &Mechanics) -> Option<Arm> {
        self.grow(now, mechanics);
        let stream = self.stream.take()?;
        if now <= stream.begin {
            return Some(Arm::from(&stream.place));
        }
        let want = stream.limit - stream.sector;
        Some(
            mechanics
                .passed(stream.begin, stream.sector, stream.place, want, now)
                .1,
        )
    }

    /// A read of `sector..end` has been fetched; the head reads on from `ended`.
    pub(crate) fn insert(
        &mut self,
        sector: u64,
        end: u64,
        ended: Nanos,
        arm: Arm,
        mechanics: &Mechanics,
    ) {
        let Some(index) = self.victim() else { return };
        let start = end.saturating_sub(self.segment_sectors).max(sector);
        self.segments[index] = Segment {
            start,
            end,
            last_use: 0,
        };
        self.touch(index);
        let limit = self.limit(end, mechanics).min(start + self.segment_sectors);
        self.stream = None;
        if limit > end {
            let place = mechanics.geometry.locate(end);
            let begin = if Arm::from(&place) == arm {
                ended
            } else {
                mechanics.reach(ended, arm, &place, false)
            };
            self.stream = Some(Stream {
                segment: index,
                sector: end,
                place,
                begin,
                limit,
            });
        }
    }

    /// `sector..end` was written from the buffer and stays there.
    pub(crate) fn keep_written(&mut self, sector: u64, end: u64) {
        let Some(index) = self.victim() else { return };
        let start = end.saturating_sub(self.segment_sectors).max(sector);
        self.segments[index] = Segment {
            start,
            end,
            last_use: 0,
        };
        self.touch(index);
    }

    fn victim(&self) -> Option<usize> {
        (0..self.segments.len()).min_by_key(|&index| self.segments[index].last_use)
    }

    /// What was read of `sector..end` before is no longer what the disk holds.
    pub(crate) fn invalidate(&mut self, sector: u64, end: u64) {
        for segment in &mut self.segments {
            if segment.start < end && sector < segment.end {
                *segment = Segment::default();
            }
        }
        if self
            .stream
            .is_some_and(|stream| self.segments[stream.segment].last_use == 0)
        {
            self.stream = None;
        }
    }
}
