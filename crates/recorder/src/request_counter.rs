//! Requests to block devices, counted by the owner of their sectors.

use std::collections::HashMap;

use tierwise_recording::{BlockOp, SECTOR_BYTES};

use crate::UserError;
use crate::timeline::{DeviceRange, ExtentMap, FileExtent};
use crate::trace_event::BlockRequest;
use crate::tracer::RequestCompletions;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    pub reads: u64,
    pub writes: u64,
    /// Flushes, each of the whole device.
    pub flushes: u64,
    pub discards: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
}

/// Requests of one device by one owner, or by no known owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceOwnerRequests {
    /// Index of the device.
    pub device: u32,
    /// Number of the owner.
    pub owner: Option<u32>,
    /// The counts.
    pub counts: RequestCounts,
}

/// Counts from [`Self::begin`] to [`Self::end`]. A request belongs to the owner of its first sector at the
/// next [`Self::count`] after it; if there was none then, to the last known owner. A method fails if the kernel refuses.
pub struct RequestCounter {
    completions: RequestCompletions,
    ledger: RequestCounterState,
}

#[derive(Default)]
struct RequestCounterState {
    devices: Vec<DeviceRange>,
    extents: ExtentMap,
    counts: HashMap<(u32, Option<u32>), RequestCounts>,
}

impl RequestCounter {
    /// Prepares to count requests to these devices.
    ///
    /// # Errors
    /// If nothing can be recorded here.
    pub fn attach(devices: Vec<DeviceRange>) -> Result<Self, UserError> {
        Ok(Self {
            completions: RequestCompletions::load()?,
            ledger: RequestCounterState {
                devices,
                ..RequestCounterState::default()
            },
        })
    }

    /// Assigns an extent to an owner; the latest assignment wins.
    pub fn place(&mut self, owner: u32, extent: FileExtent) {
        self.ledger.extents.insert(owner, extent);
    }

    /// Counts from zero.
    pub fn begin(&mut self) -> Result<(), UserError> {
        self.count();
        self.ledger.counts.clear();
        self.completions.begin()
    }

    /// Counts the requests that completed until now.
    pub fn count(&mut self) {
        self.completions.drain(|request| self.ledger.enter(request));
    }

    /// Stops counting; requests completed until now wait for [`Self::end`].
    pub fn stop(&mut self) {
        self.completions.stop();
    }

    /// Counts the rest and returns all counts.
    pub fn end(&mut self) -> Vec<DeviceOwnerRequests> {
        self.count();
        let counted = self.ledger.counts.drain();
        let owned = counted.map(|((device, owner), counts)| DeviceOwnerRequests {
            device,
            owner,
            counts,
        });
        owned.collect()
    }
}

impl RequestCounterState {
    fn enter(&mut self, request: BlockRequest) {
        let (sector, sectors) = (request.sector, request.sectors);
        // The end of a request that needed flushes is reported once more, with nothing left of it.
        let op = request.op;
        if sectors == 0 && op != BlockOp::Flush {
            return;
        }
        let Some(range) = DeviceRange::of(&self.devices, request.device, sector, op) else {
            return;
        };
        let owner = match op {
            BlockOp::Flush => None,
            _ => self.extents.find(range.device, range.within(sector)),
        };
        let key = (range.device, owner.map(|place| place.file));
        let bytes = u64::from(sectors) * SECTOR_BYTES;
        let counts = self.counts.entry(key).or_default();
        match op {
            BlockOp::Read => {
                counts.reads += 1;
                counts.read_bytes += bytes;
            }
            BlockOp::Write => {
                counts.writes += 1;
                counts.write_bytes += bytes;
            }
            BlockOp::Discard => counts.discards += 1,
            BlockOp::Flush => counts.flushes += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBER: u32 = 8 << 20;
    const LOG: u32 = 0;
    const DATA: u32 = 1;

    /// One partition that begins at sector 2048, and extents by owner as they lie in it.
    fn ledger(extents: &[(u32, u64, u64)]) -> RequestCounterState {
        let mut made = RequestCounterState {
            devices: vec![DeviceRange {
                number: NUMBER,
                first_sector: 2048,
                sectors: 10_000,
                offset_sectors: 0,
                device: 0,
            }],
            ..RequestCounterState::default()
        };
        place(&mut made, extents);
        made
    }

    fn place(ledger: &mut RequestCounterState, extents: &[(u32, u64, u64)]) {
        for &(owner, sector, sectors) in extents {
            let extent = FileExtent {
                device: 0,
                sector,
                sectors,
                offset_bytes: 0,
            };
            ledger.extents.insert(owner, extent);
        }
    }

    #[test]
    fn each_owner_has_its_own_and_the_rest_is_nobodys() {
        let mut ledger = ledger(&[(LOG, 100, 8), (DATA, 200, 8)]);
        for event in [
            BlockRequest::of(NUMBER, 2148, 8, "WS"),
            BlockRequest::of(NUMBER, 2248, 8, "R"),
            BlockRequest::of(NUMBER, 2249, 1, "W"),
            BlockRequest::of(NUMBER, 2500, 16, "FWFSM"),
            BlockRequest::of(NUMBER, 2500, 0, "FWFSM"),
            BlockRequest::of(NUMBER, 0, 0, "FF"),
            BlockRequest::of(NUMBER, 2000, 8, "W"),
            BlockRequest::of(NUMBER + 1, 2148, 8, "W"),
        ] {
            ledger.enter(event);
        }
        let counted = [Some(LOG), Some(DATA), None].map(|owner| {
            let counts = ledger.counts[&(0, owner)];
            let bytes = (counts.read_bytes, counts.write_bytes);
            (counts.reads, counts.writes, counts.flushes, bytes)
        });
        let (log, data) = ((0, 1, 0, (0, 4096)), (1, 1, 0, (4096, 512)));
        let nobody = (0, 1, 1, (0, 8192));
        assert_eq!(counted, [log, data, nobody]);
        assert_eq!(ledger.counts.len(), 3);
    }

    #[test]
    fn a_place_that_changes_hands_counts_for_the_latest_owner() {
        let mut ledger = ledger(&[(DATA, 100, 100)]);
        ledger.enter(BlockRequest::of(NUMBER, 2190, 8, "W"));
        place(&mut ledger, &[(LOG, 140, 20)]);
        ledger.enter(BlockRequest::of(NUMBER, 2190, 8, "W"));
        let writes = |owner| ledger.counts[&(0, Some(owner))].writes;
        assert_eq!((writes(DATA), writes(LOG)), (1, 1));
    }
}
