//! Which file an open gave: told at the open itself, and put before the end of its call.

use std::collections::{HashMap, VecDeque};

use crate::{Event, EventKind, Opened};

/// An open that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// When it ended, monotonic clock.
    pub time_ns: u64,
    /// Who.
    pub tid: i32,
    /// The number it got.
    pub fd: i32,
    /// Absolute path.
    pub path: String,
}

/// How far the two witnesses of one end of a call may lie apart.
const SLACK_NS: u64 = 2_000_000;

/// Opens of a burst, waiting for the ends of their calls.
pub struct Opens<'a> {
    waiting: HashMap<(i32, i64), VecDeque<&'a Open>>,
}

impl<'a> Opens<'a> {
    /// Of these, in order of time.
    pub fn new(opens: &'a [Open]) -> Self {
        let mut waiting: HashMap<_, VecDeque<_>> = HashMap::new();
        for open in opens {
            let key = (open.tid, i64::from(open.fd));
            waiting.entry(key).or_default().push_back(open);
        }
        Self { waiting }
    }

    /// What is to be said before `event`: that its call opened a file.
    pub fn before(&mut self, event: &Event) -> Option<Event> {
        let EventKind::Exit { result, number } = event.kind else {
            return None;
        };
        if !opens_a_file(number) {
            return None;
        }
        let opens = self.waiting.get_mut(&(event.tid, result))?;
        while (opens.front()).is_some_and(|open| open.time_ns + SLACK_NS < event.time_ns) {
            opens.pop_front();
        }
        let open = (opens.front()).filter(|open| open.time_ns <= event.time_ns + SLACK_NS)?;
        let kind = EventKind::Opened(Opened {
            fd: open.fd,
            path: open.path.clone(),
        });
        opens.pop_front();
        Some(Event {
            kind,
            ..event.clone()
        })
    }
}

#[cfg(target_arch = "x86_64")]
fn opens_a_file(number: u32) -> bool {
    let older = [libc::SYS_open, libc::SYS_creat];
    [libc::SYS_openat, libc::SYS_openat2].contains(&number.into()) || older.contains(&number.into())
}

#[cfg(not(target_arch = "x86_64"))]
fn opens_a_file(number: u32) -> bool {
    [libc::SYS_openat, libc::SYS_openat2].contains(&number.into())
}
