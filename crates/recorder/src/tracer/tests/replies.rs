//! Statuses meet the entries of their calls.

use tierwise_recording::TransactionStatus::{self, Idle, InTransaction, Unknown};

use crate::tracer::replies::{Replies, Reply};
use crate::{Event, EventKind};

fn reply(time_ns: u64, tid: i32, length_bytes: u64, status: TransactionStatus) -> Reply {
    Reply {
        time_ns,
        tid,
        length_bytes,
        status,
    }
}

fn told(
    replies: &mut Replies<'_>,
    time_ns: u64,
    tid: i32,
    length_bytes: u64,
) -> Option<TransactionStatus> {
    let entry = Event {
        time_ns,
        cpu: 0,
        tid,
        kind: EventKind::Enter {
            number: libc::SYS_sendto as u32,
            arguments: [9, 0xdead_beef, length_bytes, 0, 0, 0],
        },
    };
    match replies.after(&entry)?.kind {
        EventKind::Replied(status) => Some(status),
        _ => None,
    }
}

#[test]
fn each_entry_gets_what_its_own_thread_sent_then() {
    let heard = [
        reply(1_000, 5, 11, InTransaction),
        reply(1_200, 6, 90, Unknown),
        reply(9_000, 5, 11, Idle),
    ];
    let mut replies = Replies::new(&heard);
    assert_eq!(told(&mut replies, 900, 5, 11), Some(InTransaction));
    assert_eq!(told(&mut replies, 1_500, 6, 90), Some(Unknown));
    assert_eq!(told(&mut replies, 9_300, 5, 11), Some(Idle));
    assert_eq!(told(&mut replies, 9_900, 5, 11), None);
}

#[test]
fn what_was_sent_at_another_time_or_is_of_another_length_is_not_taken() {
    let heard = [reply(1_000, 5, 11, Idle), reply(5_000_000, 5, 11, Idle)];
    let mut replies = Replies::new(&heard);
    assert_eq!(told(&mut replies, 3_000_000, 5, 11), None);
    assert_eq!(told(&mut replies, 5_000_100, 5, 12), None);
    assert_eq!(told(&mut replies, 5_000_200, 5, 11), Some(Idle));
}

#[test]
fn other_calls_say_nothing() {
    let heard = [reply(1_000, 5, 11, Idle)];
    let entry = Event {
        time_ns: 1_000,
        cpu: 0,
        tid: 5,
        kind: EventKind::Enter {
            number: libc::SYS_read as u32,
            arguments: [0, 0, 11, 0, 0, 0],
        },
    };
    assert_eq!(Replies::new(&heard).after(&entry), None);
}
