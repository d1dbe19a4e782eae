//! Which file a call is about.

use tierwise_recording::{BurstRows, CallKind, NONE, UNKNOWN};

use super::Script;
use crate::event::EventKind;

/// Paths of the calls of a kind, `?` where none is known.
fn paths<'a>(script: &'a Script, rows: &BurstRows, kind: CallKind) -> Vec<&'a str> {
    let files = script.timeline.files();
    let calls = rows.calls.iter().filter(|call| call.kind == kind);
    calls
        .map(|call| match call.file {
            NONE => "?",
            file => files[file as usize].path.as_str(),
        })
        .collect()
}

#[test]
fn numbers_follow_dup_close_and_fork() {
    let mut script = Script::new();
    script.open(10, 10, 3, "/db/a");
    script.call(20..21, 10, libc::SYS_dup, &[3], 4);
    script.call(22..23, 10, libc::SYS_close, &[3], 0);
    let fork = |child, thread| EventKind::Fork {
        child,
        name: "child".to_owned(),
        thread,
    };
    script.at(30, 0, 10, fork(11, true));
    script.at(31, 0, 10, fork(12, false));
    script.open(40, 10, 3, "/db/b");
    let synced = [
        (50, 10, 4),
        (52, 11, 3),
        (54, 12, 3),
        (56, 12, 4),
        (58, 20, 4),
    ];
    for (time_ns, tid, fd) in synced {
        script.call(time_ns..time_ns + 1, tid, libc::SYS_fdatasync, &[fd], 0);
    }
    let rows = script.end(100);
    let synced = paths(&script, &rows, CallKind::Sync);
    assert_eq!(
        synced,
        ["/db/a", "?", "/db/b", "?", "/db/a"],
        "by thread: 10, 20, 11, 12, 12"
    );
}

#[test]
fn an_open_without_a_path_forgets_the_number() {
    let mut script = Script::new();
    script.open(10, 10, 3, "/db/a");
    script.call(20..21, 10, libc::SYS_openat, &[], 3);
    script.call(30..31, 10, libc::SYS_pread64, &[3, 0, 100, 4096], 100);
    let rows = script.end(100);
    assert_eq!(paths(&script, &rows, CallKind::Read), ["?"]);
}

#[test]
fn a_write_without_an_offset_goes_where_the_last_ended() {
    let mut script = Script::new();
    script.open(10, 10, 3, "/db/log");
    for time_ns in [20, 30] {
        script.call(time_ns..time_ns + 1, 10, libc::SYS_write, &[3, 0, 100], 100);
    }
    script.call(40..41, 10, libc::SYS_lseek, &[3, 7, 0], 7);
    script.call(50..51, 10, libc::SYS_write, &[3, 0, 9], 9);
    let rows = script.end(100);
    let writes = rows
        .calls
        .iter()
        .filter(|call| call.kind == CallKind::Write);
    let offsets_bytes = writes.map(|call| call.offset_bytes);
    assert_eq!(offsets_bytes.collect::<Vec<_>>(), [0, 100, 7]);
}

#[test]
fn sockets_and_pipes_receive_and_send() {
    let mut script = Script::new();
    script.call(10..11, 10, libc::SYS_accept4, &[5], 6);
    script.call(20..21, 10, libc::SYS_read, &[6, 0, 100], 50);
    script.call(30..31, 10, libc::SYS_write, &[77, 0, 100], -11);
    let rows = script.end(100);
    let received = paths(&script, &rows, CallKind::Receive);
    assert_eq!(received, ["socket:[pid 10 fd 6]"]);
    let sent = rows.calls.iter().find(|call| call.kind == CallKind::Send);
    assert!(sent.is_some_and(|call| call.failed && call.offset_bytes == UNKNOWN));
}

#[test]
fn a_removed_file_has_no_length_any_more() {
    let mut script = Script::new();
    script.enter(10, 10, libc::SYS_unlinkat, &[]);
    let path = "/db/temp".to_owned();
    script.at(11, 0, 10, EventKind::Opened { fd: -1, path });
    script.exit(12, 10, libc::SYS_unlinkat, 0);
    let rows = script.end(100);
    assert_eq!(paths(&script, &rows, CallKind::Resize), ["/db/temp"]);
    assert_eq!(rows.calls[0].offset_bytes, 0);
}
