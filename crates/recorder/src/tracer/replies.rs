//! Status in a session's reply: decoded at once, and reported after the entry of the call that sent it.

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

/// Largest distance between the two records of one entry of a call: both run in it, one after the other.
const SLACK_NS: u64 = 100_000;

/// Replies of a burst, waiting for the entries of their calls.
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

    /// The event to insert after `event`: the status that its call sends.
    pub fn after(&mut self, event: &Event) -> Option<Event> {
        let EventKind::Enter { number, arguments } = event.kind else {
            return None;
        };
        if i64::from(number) != libc::SYS_sendto {
            return None;
        }
        let waiting = self.waiting.get_mut(&event.tid)?;
        while (waiting.front()).is_some_and(|reply| reply.time_ns + SLACK_NS < event.time_ns) {
            waiting.pop_front();
        }
        let own = |reply: &&mut &Reply| {
            reply.time_ns <= event.time_ns + SLACK_NS && reply.length_bytes == arguments[2]
        };
        waiting.front_mut().filter(own)?;
        let status = waiting.pop_front()?.status;
        Some(Event {
            kind: EventKind::Replied(status),
            ..event.clone()
        })
    }
}
