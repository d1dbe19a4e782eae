//! Read-ahead that differs from the recording: on a device with another read-ahead size, and where a smaller
//! memory evicted pages that were found.
//!
//! Source: Linux mm/readahead.c. A window is sent when its stream begins, the next when a reader comes to the last
//! one sent: four times as long, then twice, up to the device's limit. A reader waits for the request that brings its
//! page. Not modelled: pages read ahead and never used.

use tierwise_device::Op;
use tierwise_recording::Role;
use tierwise_work::TimeCategory;

use crate::block::jobs::OnDone;
use crate::block::storage::MAX_REQUEST_SECTORS;
use crate::kernel::events::Event;
use crate::kernel::simulation::Simulation;
use crate::page_cache::read_ahead_windows::{Covered, Range};

/// Longest request, in sectors.
const MAX_REQUEST: u64 = MAX_REQUEST_SECTORS as u64;

impl Simulation<'_> {
    /// Reads a range of a stream that continues for `rest` sectors, with this device's windows.
    pub(crate) fn read_stream(&mut self, role: Role, sector: u64, sectors: u32, rest: u32) {
        let end = sector + u64::from(sectors);
        let limit = self.storage.layout().read_ahead(role);
        let stream_end = end + u64::from(rest);
        let asked_end = end.min(sector + limit);
        if asked_end < end {
            self.read_ahead
                .keep_unsent(role, (asked_end, end), stream_end);
        }
        self.send_windows(role, (sector, asked_end), stream_end, Covered::Unread);
    }

    /// A reader reaches pages of a recorded request that were not all sent here.
    pub(crate) fn continue_stream(&mut self, role: Role, sector: u64, sectors: u32) {
        let range = (sector, sector + u64::from(sectors));
        if let Some((part, stream_end)) = self.read_ahead.take_unsent(role, range) {
            self.send_windows(role, part, stream_end, Covered::Whole);
        }
    }

    /// A session reads evicted pages; whether it can continue at once. A sequential read gets read-ahead.
    pub(crate) fn read_evicted(
        &mut self,
        index: u32,
        role: Role,
        sector: u64,
        sectors: u32,
    ) -> bool {
        let until = Some((role, sector + u64::from(sectors)));
        let before = std::mem::replace(&mut self.session(index).read_until, until);
        if self.awaits_own_request(index, role, sector, sectors) {
            return self.block(index);
        }
        let goes_on = before == Some((role, sector));
        let ahead = self.storage.layout().read_ahead(role) as u32;
        self.read_stream(role, sector, sectors, if goes_on { ahead } else { 0 });
        self.await_read_ahead(index, role, sector, sectors)
    }

    /// Whether pages are in the cache; else the session waits for those under way.
    pub(crate) fn await_read_ahead(
        &mut self,
        index: u32,
        role: Role,
        sector: u64,
        sectors: u32,
    ) -> bool {
        let range = (sector, sector + u64::from(sectors));
        if !self.read_ahead.wait_for(index, role, range) {
            return true;
        }
        self.set_activity(index, TimeCategory::Read);
        self.block(index)
    }

    /// Sends the windows that the kernel would send at this read of a stream.
    fn send_windows(&mut self, role: Role, range: Range, stream_end: u64, covered: Covered) {
        let limit = self.storage.layout().read_ahead(role);
        let windows = self
            .read_ahead
            .next_windows(role, range, stream_end, limit, covered);
        for window in windows.into_iter().flatten() {
            self.send_window(role, window, limit);
        }
    }

    /// Sends a window as separate requests.
    fn send_window(&mut self, role: Role, (first, until): Range, limit: u64) {
        let mut from = first;
        while from < until {
            let end = until.min(from + limit.min(MAX_REQUEST));
            let job = self.send_job(OnDone::ReadAhead, Op::Read, role, from, (end - from) as u32);
            self.read_ahead.sent(job, role, (from, end));
            from = end;
        }
        self.wake_flusher();
    }

    /// A read-ahead request was completed.
    pub(crate) fn read_ahead_done(&mut self, job: u32) {
        for session in self.read_ahead.done(job) {
            self.events.push(self.now, Event::Wake(session));
        }
    }
}
