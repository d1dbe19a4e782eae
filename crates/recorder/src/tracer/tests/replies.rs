//! Statuses meet the entries of their calls.

use tierwise_recording::TransactionStatus::{self, Idle, InTransaction, Unknown};

use crate::event::{Event, EventKind};
use crate::tracer::replies::{Replies, Reply};

fn reply(time_ns: u64, tid: i32, length_bytes: u64, status: TransactionStatus) -> Reply {
    Reply {
        time_ns,
        tid,
        length_bytes,
        status,
    }
}

fn exit(time_ns: u64, tid: i32, number: libc::c_long, result: i64) -> Event {
    let number = number as u32;
    Event {
        time_ns,
        cpu: 0,
        tid,
        kind: EventKind::Exit { number, result },
    }
}

/// When the call of an exit began, and how its data ends.
fn told(
    replies: &mut Replies<'_>,
    time_ns: u64,
    tid: i32,
    length_bytes: i64,
) -> Option<(u64, TransactionStatus)> {
    let exit = exit(time_ns, tid, libc::SYS_sendto, length_bytes);
    match replies.before(&exit)?.kind {
        EventKind::Replied { begun_ns, status } => Some((begun_ns, status)),
        _ => None,
    }
}

#[test]
fn each_exit_gets_what_its_own_thread_sent_last() {
    let heard = [
        reply(1_000, 5, 11, InTransaction),
        reply(1_200, 6, 90, Unknown),
        reply(8_000, 5, 11, InTransaction),
        reply(9_000, 5, 11, Idle),
    ];
    let mut replies = Replies::new(&heard);
    assert_eq!(
        told(&mut replies, 1_100, 5, 11),
        Some((1_000, InTransaction))
    );
    assert_eq!(told(&mut replies, 1_500, 6, 90), Some((1_200, Unknown)));
    assert_eq!(told(&mut replies, 9_300, 5, 11), Some((9_000, Idle)));
    assert_eq!(told(&mut replies, 9_900, 5, 11), None);
}

#[test]
fn what_was_sent_later_or_in_part_is_not_taken() {
    let heard = [reply(1_000, 5, 11, Idle), reply(5_000, 5, 11, Idle)];
    let mut replies = Replies::new(&heard);
    assert_eq!(told(&mut replies, 900, 5, 11), None);
    assert_eq!(told(&mut replies, 1_900, 5, 10), None);
    assert_eq!(told(&mut replies, 5_200, 5, 11), Some((5_000, Idle)));
}

#[test]
fn other_calls_say_nothing() {
    let heard = [reply(1_000, 5, 11, Idle)];
    let exit = exit(1_100, 5, libc::SYS_read, 11);
    assert_eq!(Replies::new(&heard).before(&exit), None);
}
