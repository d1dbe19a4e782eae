//! Paths and statuses meet the ends of their calls.

use tierwise_recording::TransactionStatus::{self, Idle, InTransaction, Unknown};

use crate::event::{Event, EventKind};
use crate::tracer::opens::{Open, Opens};
use crate::tracer::replies::{Replies, Reply};

fn exit(time_ns: u64, tid: i32, number: libc::c_long, result: i64) -> Event {
    let number = number as u32;
    Event {
        time_ns,
        cpu: 0,
        tid,
        kind: EventKind::Exit { number, result },
    }
}

fn open(time_ns: u64, tid: i32, result: i64, path: &str) -> Open {
    Open {
        time_ns,
        pid: tid,
        tid,
        result,
        path: path.into(),
    }
}

/// The number and path of a file that a call of thread 5 opened.
fn opened(
    opens: &mut Opens<'_>,
    time_ns: u64,
    number: libc::c_long,
    result: i64,
) -> Option<(i32, String)> {
    match opens.before(&exit(time_ns, 5, number, result))?.kind {
        EventKind::Opened { fd, path } => Some((fd, path)),
        _ => None,
    }
}

#[test]
fn the_same_number_stands_for_one_file_after_another() {
    let heard = [
        open(1_000, 5, 3, "/a"),
        open(9_000, 5, 3, "/b"),
        open(1_500, 6, 3, "/c"),
    ];
    let mut opens = Opens::new(&heard);
    let file = |path: &str| Some((3, path.to_owned()));
    assert_eq!(opened(&mut opens, 1_100, libc::SYS_openat, 3), file("/a"));
    assert_eq!(opened(&mut opens, 5_000, libc::SYS_read, 3), None);
    assert_eq!(opened(&mut opens, 9_100, libc::SYS_openat, 3), file("/b"));
    let other = opens.before(&exit(1_400, 6, libc::SYS_openat, 3));
    let expected = EventKind::Opened {
        fd: 3,
        path: "/c".to_owned(),
    };
    assert_eq!(other.map(|event| event.kind), Some(expected));
    assert_eq!((opens.seen, opens.unresolved), (3, 0));
}

#[test]
fn a_path_of_long_ago_is_not_taken_and_the_open_counts_as_unresolved() {
    let heard = [open(1_000, 5, 3, "/a")];
    let mut opens = Opens::new(&heard);
    for result in [3, -2] {
        let found = opened(&mut opens, 50_000_000, libc::SYS_openat, result);
        assert_eq!(found, None);
    }
    assert_eq!((opens.seen, opens.unresolved), (1, 1));
}

#[test]
fn a_removal_names_its_file_without_a_number() {
    let heard = [open(1_000, 5, 0, "/gone")];
    let mut opens = Opens::new(&heard);
    let removed = opened(&mut opens, 1_100, libc::SYS_unlinkat, 0);
    assert_eq!(removed, Some((-1, "/gone".into())));
    assert_eq!(opens.seen, 0);
}

fn reply(time_ns: u64, tid: i32, length_bytes: u64, status: TransactionStatus) -> Reply {
    Reply {
        time_ns,
        tid,
        length_bytes,
        status,
    }
}

/// When the call of an exit of `send` began, and how its data ends.
fn replied(replies: &mut Replies<'_>, time_ns: u64, tid: i32, result: i64) -> Told {
    match replies
        .before(&exit(time_ns, tid, libc::SYS_sendto, result))?
        .kind
    {
        EventKind::Replied { begun_ns, status } => Some((begun_ns, status)),
        _ => None,
    }
}

type Told = Option<(u64, TransactionStatus)>;

#[test]
fn each_exit_gets_what_its_own_thread_sent_last() {
    let heard = [
        reply(1_000, 5, 11, InTransaction),
        reply(1_200, 6, 90, Unknown),
        reply(8_000, 5, 11, InTransaction),
        reply(9_000, 5, 11, Idle),
    ];
    let mut replies = Replies::new(&heard);
    let begun = replied(&mut replies, 1_100, 5, 11);
    assert_eq!(begun, Some((1_000, InTransaction)));
    assert_eq!(replied(&mut replies, 1_500, 6, 90), Some((1_200, Unknown)));
    assert_eq!(replied(&mut replies, 9_300, 5, 11), Some((9_000, Idle)));
    assert_eq!(replied(&mut replies, 9_900, 5, 11), None);
}

#[test]
fn what_was_sent_later_or_in_part_is_not_taken() {
    let heard = [reply(1_000, 5, 11, Idle), reply(5_000, 5, 11, Idle)];
    let mut replies = Replies::new(&heard);
    assert_eq!(replied(&mut replies, 900, 5, 11), None);
    assert_eq!(replied(&mut replies, 1_900, 5, 10), None);
    assert_eq!(replied(&mut replies, 5_200, 5, 11), Some((5_000, Idle)));
}

#[test]
fn other_calls_say_nothing() {
    let heard = [reply(1_000, 5, 11, Idle)];
    let exit = exit(1_100, 5, libc::SYS_read, 11);
    assert_eq!(Replies::new(&heard).before(&exit), None);
}
