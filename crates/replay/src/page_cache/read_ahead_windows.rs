//! Read-ahead windows: the parts of each stream that were sent, are under way, or remain. It sends nothing
//! itself.

use tierwise_recording::Role;

/// Windows kept in memory.
const MAX_WINDOWS: usize = 256;

/// First sector and end of a range.
pub(crate) type Range = (u64, u64);

/// A window: the part of a stream sent at one time.
#[derive(Clone, Copy, Debug)]
struct Window {
    role: Role,
    first: u64,
    /// First sector that no recorded read has reached.
    unread: u64,
    end: u64,
    /// Nominal size, which determines the next window's.
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

/// The rest of a recorded request that is longer than any here; it is sent by windows as readers reach it.
#[derive(Clone, Copy, Debug)]
struct Unsent {
    role: Role,
    from: u64,
    end: u64,
    stream_end: u64,
}

/// Start of the part of a window that covers a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Covered {
    /// From the first sector that no recorded read has reached.
    Unread,
    /// The whole window.
    Whole,
}

/// Windows and requests of all streams.
#[derive(Debug, Default)]
pub(crate) struct ReadAhead {
    windows: Vec<Window>,
    unsent: Vec<Unsent>,
    coming: Vec<Coming>,
}

impl ReadAhead {
    /// Keeps a range of a stream to be sent as readers reach it.
    pub(crate) fn keep_unsent(&mut self, role: Role, (from, end): Range, stream_end: u64) {
        if self.unsent.len() >= MAX_WINDOWS {
            self.unsent.remove(0);
        }
        self.unsent.push(Unsent {
            role,
            from,
            end,
            stream_end,
        });
    }

    /// A reader reaches a range: returns the part to send now, and the end of its stream.
    pub(crate) fn take_unsent(&mut self, role: Role, (sector, end): Range) -> Option<(Range, u64)> {
        let ours = |one: &Unsent| one.role == role && one.from < end && sector < one.end;
        let at = self.unsent.iter().rposition(ours)?;
        let one = self.unsent[at];
        let part = (one.from.max(sector), one.end.min(end));
        self.unsent[at].from = part.1;
        if part.1 == one.end {
            self.unsent.remove(at);
        }
        Some((part, one.stream_end))
    }

    /// The windows to send at a read of a range of a stream that ends at `stream_end`, in order.
    pub(crate) fn next_windows(
        &mut self,
        role: Role,
        (first, end): Range,
        stream_end: u64,
        limit: u64,
        covered: Covered,
    ) -> [Option<Range>; 2] {
        let from = |window: &Window| match covered {
            Covered::Unread => window.unread,
            Covered::Whole => window.first,
        };
        let mut latest = self.windows.iter_mut().rev();
        let covering = latest
            .find(|window| window.role == role && from(window) <= first && first < window.end);
        if let Some(window) = covering {
            window.unread = window.unread.max(end);
            let next = (window.end, next_size(window.sectors, limit));
            let follows = !std::mem::replace(&mut window.followed, true);
            if follows && next.0 < stream_end {
                let until = (next.0 + next.1).max(end).min(stream_end);
                return [Some(self.open(role, next, until)), None];
            }
            return [None, None];
        }
        let before = self
            .windows
            .iter()
            .rev()
            .find(|window| window.role == role && window.end == first);
        let sectors = before.map_or(end - first, |window| next_size(window.sectors, limit));
        let until = (first + sectors).min(stream_end).max(end);
        let goes_on = before.is_some();
        let one = self.open(role, (first, sectors), until);
        if let Some(window) = self.windows.last_mut() {
            window.unread = end;
        }
        // A reader that asks for all of a window has reached its last page.
        let follows = goes_on && until == end && end < stream_end;
        let next = follows.then(|| {
            let next = (end, next_size(sectors, limit));
            self.open(role, next, (end + next.1).min(stream_end))
        });
        [Some(one), next]
    }

    /// Adds a window of a nominal size that ends at `until`.
    fn open(&mut self, role: Role, (first, sectors): (u64, u64), until: u64) -> Range {
        if self.windows.len() >= MAX_WINDOWS {
            self.windows.remove(0);
        }
        self.windows.push(Window {
            role,
            first,
            unread: first,
            end: until,
            sectors,
            followed: false,
        });
        (first, until)
    }

    /// Adds a request for a range.
    pub(crate) fn sent(&mut self, job: u32, role: Role, (first, end): Range) {
        self.coming.push(Coming {
            job,
            role,
            first,
            end,
            waiting: Vec::new(),
        });
    }

    /// Lets a session wait for the last request under way that overlaps a range; whether there is one.
    pub(crate) fn wait_for(&mut self, session: u32, role: Role, (sector, end): Range) -> bool {
        let coming = self.coming.iter_mut();
        let ours = coming.filter(|one| one.role == role && one.first < end && sector < one.end);
        let last = ours.max_by_key(|one| one.end);
        last.map(|one| one.waiting.push(session)).is_some()
    }

    /// Removes a completed request; the sessions that waited for it.
    pub(crate) fn done(&mut self, job: u32) -> Vec<u32> {
        let at = self.coming.iter().position(|one| one.job == job);
        at.map_or(Vec::new(), |at| self.coming.swap_remove(at).waiting)
    }
}

/// Size of the window after one of this many sectors (`get_next_ra_size`).
fn next_size(sectors: u64, limit: u64) -> u64 {
    let next = if sectors < limit / 16 {
        4 * sectors
    } else {
        2 * sectors
    };
    next.clamp(1, limit)
}
