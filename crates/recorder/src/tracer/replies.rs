//! Status in a session's reply: decoded at once, and reported before the exit of the call that sent it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use tierwise_recording::TransactionStatus;

use super::reply_watch::ReplyWatch;
use crate::{Event, EventKind, protocol};

/// Data sent by a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// When it began, monotonic clock.
    pub time_ns: u64,
    /// Thread.
    pub tid: i32,
    /// Number of bytes.
    pub length_bytes: u64,
    /// Status in its last bytes.
    pub status: TransactionStatus,
}

/// Collects the replies of a burst. Their bytes are not kept.
pub struct Listener {
    watch: Arc<Mutex<ReplyWatch>>,
    replies: Vec<Reply>,
}

impl Listener {
    /// Listens to the processes that the watch runs for.
    pub fn new(watch: Arc<Mutex<ReplyWatch>>) -> Self {
        Self {
            watch,
            replies: Vec::new(),
        }
    }

    /// Takes the replies since the last time.
    pub fn hear(&mut self) {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        watch.drain(|sent| {
            self.replies.push(Reply {
                time_ns: sent.time_ns,
                tid: sent.tid,
                length_bytes: sent.length_bytes,
                status: protocol::status(sent.tail(), sent.length_bytes),
            });
        });
    }

    /// The replies, in order of time.
    pub fn into_replies(mut self) -> Vec<Reply> {
        self.replies.sort_by_key(|reply| reply.time_ns);
        self.replies
    }
}

/// Replies of a burst, waiting for the exits of their calls.
pub struct Replies<'a> {
    waiting: HashMap<i32, VecDeque<&'a Reply>>,
}

impl<'a> Replies<'a> {
    /// Of these, in order of time.
    pub fn new(replies: &'a [Reply]) -> Self {
        let mut waiting: HashMap<_, VecDeque<_>> = HashMap::new();
        for reply in replies {
            waiting.entry(reply.tid).or_default().push_back(reply);
        }
        Self { waiting }
    }

    /// The event to insert before `event`: what its call sends. Earlier calls whose exits were not told, as they sent
    /// nothing, are passed over.
    pub fn before(&mut self, event: &Event) -> Option<Event> {
        let EventKind::Exit { number, result } = event.kind else {
            return None;
        };
        if i64::from(number) != libc::SYS_sendto {
            return None;
        }
        let waiting = self.waiting.get_mut(&event.tid)?;
        let mut last = None;
        while (waiting.front()).is_some_and(|reply| reply.time_ns <= event.time_ns) {
            last = waiting.pop_front();
        }
        let whole = |reply: &&Reply| u64::try_from(result) == Ok(reply.length_bytes);
        let reply = last.filter(whole)?;
        Some(Event {
            kind: EventKind::Replied {
                begun_ns: reply.time_ns,
                status: reply.status,
            },
            ..event.clone()
        })
    }
}
