//! What the kernel reads ahead where that is not as it was recorded: on a device where it reads further, or less far,
//! and where a smaller memory no longer holds what was found.
//!
//! Source: Linux mm/readahead.c. A window is sent when its stream begins, and the next when a reader comes to the last
//! one sent: four times as long, then twice, up to what the device is given. A reader waits for the request that brings
//! its page. Not modelled: pages that are read ahead and never used.

use tierwise_device::Op;
use tierwise_recording::Role;
use tierwise_work::Part;

use crate::block::jobs::Then;
use crate::block::storage::LONGEST_SECTORS;
use crate::kernel::events::Event;
use crate::kernel::simulation::Simulation;

/// The longest request, in sectors.
const LONGEST: u64 = LONGEST_SECTORS as u64;
/// Windows that are remembered.
const MOST_WINDOWS: usize = 256;

/// What was sent of a stream at a time.
#[derive(Clone, Copy, Debug)]
struct Window {
    role: Role,
    first: u64,
    /// The first sector that no recorded read has come to.
    unread: u64,
    end: u64,
    sectors: u64,
    /// Whether the next one was sent.
    followed: bool,
}

/// A request under way.
#[derive(Debug)]
struct Coming {
    job: u32,
    role: Role,
    first: u64,
    end: u64,
    waiting: Vec<u32>,
}

/// What one recorded request, longer than any is here, brought and readers have not come to: it is sent window by window
/// as they do.
#[derive(Clone, Copy, Debug)]
struct Unsent {
    role: Role,
    from: u64,
    end: u64,
    stream_end: u64,
}

/// Windows and requests of all streams.
#[derive(Debug, Default)]
pub(crate) struct ReadAhead {
    windows: Vec<Window>,
    unsent: Vec<Unsent>,
    coming: Vec<Coming>,
}

impl Simulation<'_> {
    /// A recorded read, of a stream that goes on for so many sectors, where windows differ.
    pub(crate) fn stream(&mut self, role: Role, sector: u64, sectors: u32, rest: u32) {
        let end = sector + u64::from(sectors);
        let limit = self.storage.layout().read_ahead(role);
        let stream_end = end + u64::from(rest);
        let asked_end = end.min(sector + limit);
        if asked_end < end {
            let unsent = &mut self.read_ahead.unsent;
            if unsent.len() >= MOST_WINDOWS {
                unsent.remove(0);
            }
            unsent.push(Unsent {
                role,
                from: asked_end,
                end,
                stream_end,
            });
        }
        let unread = |window: &Window| window.unread;
        self.fetch(role, (sector, asked_end), stream_end, unread);
    }

    /// A reader comes to pages that one recorded request brought, of which not all were sent here.
    pub(crate) fn read_on(&mut self, role: Role, sector: u64, sectors: u32) {
        let end = sector + u64::from(sectors);
        let unsent = &mut self.read_ahead.unsent;
        let ours = |one: &Unsent| one.role == role && one.from < end && sector < one.end;
        let Some(at) = unsent.iter().rposition(ours) else {
            return;
        };
        let one = unsent[at];
        let part = (one.from.max(sector), one.end.min(end));
        unsent[at].from = part.1;
        if part.1 == one.end {
            unsent.remove(at);
        }
        self.fetch(role, part, one.stream_end, |window| window.first);
    }

    /// A session reads what the page cache no longer holds; whether it can go on at once. Who goes on where it was has
    /// more read ahead.
    pub(crate) fn read_anew(&mut self, index: u32, role: Role, sector: u64, sectors: u32) -> bool {
        let until = Some((role, sector + u64::from(sectors)));
        let before = std::mem::replace(&mut self.session(index).read_until, until);
        if self.is_coming(index, role, sector, sectors) {
            return self.waits(index);
        }
        let goes_on = before == Some((role, sector));
        let ahead = self.storage.layout().read_ahead(role) as u32;
        self.stream(role, sector, sectors, if goes_on { ahead } else { 0 });
        self.has_come(index, role, sector, sectors)
    }

    /// Whether pages are there; a session waits for those that are on their way.
    pub(crate) fn has_come(&mut self, index: u32, role: Role, sector: u64, sectors: u32) -> bool {
        let end = sector + u64::from(sectors);
        let coming = self.read_ahead.coming.iter_mut();
        let ours = coming.filter(|one| one.role == role && one.first < end && sector < one.end);
        let Some(last) = ours.max_by_key(|one| one.end) else {
            return true;
        };
        last.waiting.push(index);
        self.does(index, Part::Read);
        self.waits(index)
    }

    /// Sends what the kernel would at a read from one sector to another, of a stream that ends there; a window has
    /// what is read from where `from` says on.
    fn fetch(
        &mut self,
        role: Role,
        (first, end): (u64, u64),
        stream_end: u64,
        from: impl Fn(&Window) -> u64,
    ) {
        let limit = self.storage.layout().read_ahead(role);
        let windows = &mut self.read_ahead.windows;
        let mut latest = windows.iter_mut().rev();
        let covering = latest
            .find(|window| window.role == role && from(window) <= first && first < window.end);
        if let Some(window) = covering {
            window.unread = window.unread.max(end);
            let next = (window.end, next_size(window.sectors, limit));
            let follows = !std::mem::replace(&mut window.followed, true);
            if follows && next.0 < stream_end {
                let until = (next.0 + next.1).max(end).min(stream_end);
                self.send_window(role, next, until, limit);
            }
            return;
        }
        let before = windows
            .iter()
            .rev()
            .find(|window| window.role == role && window.end == first);
        let sectors = before.map_or(end - first, |window| next_size(window.sectors, limit));
        let until = (first + sectors).min(stream_end).max(end);
        let goes_on = before.is_some();
        self.send_window(role, (first, sectors), until, limit);
        if let Some(window) = self.read_ahead.windows.last_mut() {
            window.unread = end;
        }
        // Who goes on and asks for all of a window has come to its last page.
        if goes_on && until == end && end < stream_end {
            let next = (end, next_size(sectors, limit));
            self.send_window(role, next, (end + next.1).min(stream_end), limit);
        }
    }

    /// Sends a window of a nominal size as far as its stream goes, in requests of their own.
    fn send_window(&mut self, role: Role, (first, sectors): (u64, u64), until: u64, limit: u64) {
        let mut from = first;
        while from < until {
            let end = until.min(from + limit.min(LONGEST));
            let job = self.send_job(Then::Ahead, Op::Read, role, from, (end - from) as u32);
            self.read_ahead.coming.push(Coming {
                job,
                role,
                first: from,
                end,
                waiting: Vec::new(),
            });
            from = end;
        }
        self.wake_flusher();
        let windows = &mut self.read_ahead.windows;
        if windows.len() >= MOST_WINDOWS {
            windows.remove(0);
        }
        windows.push(Window {
            role,
            first,
            unread: first,
            end: until,
            sectors,
            followed: false,
        });
    }

    /// A request of a stream was answered.
    pub(crate) fn came(&mut self, job: u32) {
        let coming = &mut self.read_ahead.coming;
        if let Some(at) = coming.iter().position(|one| one.job == job) {
            for session in coming.swap_remove(at).waiting {
                self.events.push(self.now, Event::Wake(session));
            }
        }
    }
}

/// The window after one of so many sectors (`get_next_ra_size`).
fn next_size(sectors: u64, limit: u64) -> u64 {
    let next = if sectors < limit / 16 {
        4 * sectors
    } else {
        2 * sectors
    };
    next.clamp(1, limit)
}
