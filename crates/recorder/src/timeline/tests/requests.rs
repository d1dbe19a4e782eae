//! Which file and call a block request belongs to.

use std::ops::Range;

use tierwise_recording::{BlockOp, BurstRows, CallKind, NONE, Role, TransactionStatus, UNKNOWN};

use super::{Script, range};
use crate::timeline::{FileExtent, FileFacts};
use crate::trace_event::{BlockRequest, TraceEventKind};

impl Script {
    fn issue(&mut self, time_ns: u64, tid: i32, sector: u64, sectors: u32, letters: &str) {
        let request = request(sector, sectors, letters);
        self.at(time_ns, 0, tid, TraceEventKind::Issue(request));
    }

    fn complete(&mut self, time_ns: u64, sector: u64, sectors: u32, letters: &str) {
        let request = request(sector, sectors, letters);
        self.at(time_ns, 0, 0, TraceEventKind::Complete(request));
    }

    /// Issues a request and completes it.
    fn request(&mut self, time_ns: Range<u64>, tid: i32, sector: u64, sectors: u32, letters: &str) {
        self.issue(time_ns.start, tid, sector, sectors, letters);
        self.complete(time_ns.end, sector, sectors, letters);
    }

    /// Says that a file lies at `sector` of the device.
    fn lies(&mut self, path: &str, sector: u64, sectors: u64) {
        self.lies_on(0, path, sector, sectors);
    }

    fn lies_on(&mut self, device: u32, path: &str, sector: u64, sectors: u64) {
        let mut known = self.timeline.paths_to_resolve().into_iter();
        let (file, _) = known.find(|(_, known)| known == path).expect(path);
        let extent = FileExtent {
            device,
            sector,
            sectors,
            offset_bytes: 0,
        };
        let facts = FileFacts {
            role: Some(Role::Data),
            device: Some(device),
            extents: vec![extent],
            ..FileFacts::default()
        };
        self.timeline.describe_file(file, facts);
    }
}

fn request(sector: u64, sectors: u32, letters: &str) -> BlockRequest {
    BlockRequest::of(7 << 20, sector, sectors, letters)
}

#[test]
fn write_back_is_joined_by_place_and_a_flush_by_the_sync_under_way() {
    let mut script = Script::new();
    script.open(10, 10, 3, "/db/data");
    script.open(12, 10, 4, "/db/log");
    script.enter(20, 10, libc::SYS_fdatasync, &[4]);
    script.request(30..60, 999, 5000, 8, "W");
    script.issue(31, 999, 0, 0, "FF");
    script.complete(61, u64::MAX, 0, "FF");
    script.request(32..62, 999, 9000, 8, "WSM");
    script.issue(33, 999, 700, 8, "W");
    script.exit(90, 10, libc::SYS_fdatasync, 0);
    script.at(95, 0, 0, TraceEventKind::BurstEnd);
    script.lies("/db/data", 5000, 100);
    script.lies("/db/log", 100, 100);
    let rows = script.end(95);
    let found = rows.blocks.iter().map(|block| (block.op, block.file));
    let expected = [
        (BlockOp::Write, 0),
        (BlockOp::Flush, 1),
        (BlockOp::Write, NONE),
    ];
    let why = "the journal is of no file; what did not complete is left out";
    assert_eq!(found.collect::<Vec<_>>(), expected, "{why}");
    assert_eq!(rows.blocks[1].completed_ns, 61);
}

#[test]
fn what_another_program_asks_for_is_of_no_file_unless_it_lies_there() {
    let mut script = Script::new();
    script.open(10, 10, 3, "/db/data");
    script.open(12, 10, 4, "/db/log");
    script.open(14, 10, 5, "/db/new");
    script.enter(20, 10, libc::SYS_fdatasync, &[4]);
    script.request(30..31, 777, 5000, 8, "RP");
    script.request(32..33, 777, 700, 8, "RP");
    script.request(34..35, 777, 800, 8, "WSP");
    script.issue(36, 777, 0, 0, "FFP");
    script.complete(37, u64::MAX, 0, "FFP");
    script.request(38..39, 999, 900, 8, "R");
    script.request(40..41, 999, 600, 8, "WS");
    script.request(42..43, 10, 610, 8, "WS");
    script.request(44..45, 999, 620, 8, "WSJ");
    script.exit(90, 10, libc::SYS_fdatasync, 0);
    script.at(95, 0, 0, TraceEventKind::BurstEnd);
    script.lies("/db/data", 5000, 100);
    script.lies("/db/log", 100, 100);
    let rows = script.end(95);
    let found = rows.blocks.iter().map(|block| block.file);
    let expected = [0, NONE, NONE, NONE, NONE, NONE, NONE, 1];
    let why = "of a synced file whose place is known, only the journal's writes lie elsewhere";
    assert_eq!(found.collect::<Vec<_>>(), expected, "{why}");
}

#[test]
fn a_flush_of_a_disk_is_of_the_partition_whose_file_is_synced() {
    let mut script = Script::with(vec![range(0, 0), range(1, 1_000_000)]);
    script.open(10, 10, 3, "/data");
    script.open(12, 10, 4, "/log");
    script.enter(20, 10, libc::SYS_fdatasync, &[4]);
    script.request(30..40, 999, 1_000_100, 8, "W");
    script.issue(41, 999, 0, 0, "FF");
    script.complete(61, u64::MAX, 0, "FF");
    script.exit(90, 10, libc::SYS_fdatasync, 0);
    script.at(95, 0, 0, TraceEventKind::BurstEnd);
    script.lies_on(0, "/data", 5000, 100);
    script.lies_on(1, "/log", 100, 100);
    let rows = script.end(95);
    let found = rows.blocks.iter().map(|block| (block.device, block.file));
    assert_eq!(found.collect::<Vec<_>>(), [(1, 1), (1, 1)]);
}

#[test]
fn a_read_belongs_to_the_call_of_its_thread_wherever_it_lies() {
    let mut script = Script::new();
    script.open(10, 10, 3, "/db/temp");
    script.enter(20, 10, libc::SYS_pread64, &[3, 0, 4096, 0]);
    script.request(21..22, 10, 5000, 8, "R");
    script.exit(23, 10, libc::SYS_pread64, 4096);
    script.at(95, 0, 0, TraceEventKind::BurstEnd);
    script.lies("/db/temp", 1, 1);
    let rows = script.end(95);
    assert_eq!((rows.blocks[0].file, rows.blocks[0].thread), (0, 0));
}

#[test]
fn requests_of_an_io_uring_get_their_file_and_offset_from_the_device() {
    let mut script = Script::new();
    script.open(10, 10, 3, "/db/ibdata");
    let submit = |request| TraceEventKind::UringSubmit {
        request,
        operation: 22,
    };
    script.enter(20, 10, libc::SYS_io_uring_enter, &[]);
    script.at(21, 0, 10, submit(0xa));
    script.at(22, 0, 10, submit(0xb));
    script.issue(23, 10, 5032, 32, "R");
    script.issue(24, 10, 5000, 32, "R");
    script.exit(25, 10, libc::SYS_io_uring_enter, 2);
    script.complete(40, 5032, 32, "R");
    let done = |request| TraceEventKind::UringComplete {
        request,
        result: 16384,
    };
    script.at(41, 0, 999, done(0xb));
    script.complete(50, 5000, 32, "R");
    script.at(51, 0, 999, done(0xa));
    script.at(95, 0, 0, TraceEventKind::BurstEnd);
    script.lies("/db/ibdata", 5000, 100);
    let rows = script.end(95);
    let calls = rows.calls.iter();
    let reads = calls.filter(|call| call.kind == CallKind::Read && call.asynchronous);
    let reads = reads.map(|call| (call.start_ns, call.end_ns, call.file, call.offset_bytes));
    let expected = [(21, 51, 0, 0), (22, 41, 0, 32 * 512)];
    assert_eq!(reads.collect::<Vec<_>>(), expected);
}

#[test]
fn aio_is_known_by_its_requests_alone() {
    let mut script = Script::new();
    script.open(10, 10, 3, "/db/ibdata");
    script.enter(20, 10, libc::SYS_io_submit, &[]);
    script.issue(23, 10, 5016, 16, "WS");
    script.exit(25, 10, libc::SYS_io_submit, 1);
    script.complete(40, 5016, 16, "WS");
    script.at(95, 0, 0, TraceEventKind::BurstEnd);
    script.lies("/db/ibdata", 5000, 100);
    let rows = script.end(95);
    let mut calls = rows.calls.iter();
    let call = calls.find(|call| call.asynchronous).expect("a call");
    let expected = (CallKind::Write, 0, 40);
    assert_eq!((call.kind, call.file, call.end_ns), expected);
    assert_eq!((call.offset_bytes, call.size_bytes), (8192, 8192));
}

#[test]
fn write_back_of_a_removed_file_is_that_of_the_files_without_a_place() {
    let mut script = Script::new();
    script.open(10, 10, 3, "/db/data");
    script.open(12, 10, 4, "/db/temp1");
    script.request(31..60, 999, 8000, 8, "W");
    script.request(32..61, 999, 5000, 8, "W");
    script.at(95, 0, 0, TraceEventKind::BurstEnd);
    script.lies("/db/data", 5000, 100);
    let facts = FileFacts {
        role: Some(Role::Temp),
        device: Some(0),
        ..FileFacts::default()
    };
    script.timeline.describe_file(1, facts);
    let rows = script.end(95);
    let files: Vec<u32> = rows.blocks.iter().map(|block| block.file).collect();
    assert_eq!(files, [1, 0]);
}

#[test]
fn requests_of_other_programs_are_of_no_file_that_is_empty_or_removed() {
    let file_of_request = |writes: bool, empty: bool| {
        let mut script = Script::new();
        script.open(10, 10, 3, "/db/empty");
        if writes {
            script.enter(20, 10, libc::SYS_write, &[3, 0, 4096]);
            script.exit(25, 10, libc::SYS_write, 4096);
        }
        script.request(31..60, 999, 8000, 8, "W");
        script.at(95, 0, 0, TraceEventKind::BurstEnd);
        let facts = FileFacts {
            role: Some(Role::System),
            device: Some(0),
            empty,
            ..FileFacts::default()
        };
        script.timeline.describe_file(0, facts);
        script.end(95).blocks[0].file
    };
    for empty in [true, false] {
        assert_eq!(file_of_request(false, empty), NONE);
        assert_eq!(
            file_of_request(true, empty),
            0,
            "it may have been cut off since"
        );
    }
}

#[test]
fn a_request_that_is_larger_than_a_file_is_not_of_it() {
    let mut script = Script::new();
    script.open(10, 10, 3, "/db/map");
    script.request(31..60, 999, 8000, 8, "W");
    script.request(32..61, 999, 9000, 64, "W");
    script.at(95, 0, 0, TraceEventKind::BurstEnd);
    let facts = FileFacts {
        role: Some(Role::Data),
        device: Some(0),
        size_bytes: 24576,
        ..FileFacts::default()
    };
    script.timeline.describe_file(0, facts);
    let rows = script.end(95);
    let files: Vec<u32> = rows.blocks.iter().map(|block| block.file).collect();
    assert_eq!(files, [0, NONE]);
}

#[test]
fn a_status_is_of_what_is_sent_and_not_of_what_is_written() {
    let mut script = Script::new();
    script.open(10, 10, 4, "/log");
    let replied = |begun_ns| TraceEventKind::Replied {
        begun_ns,
        status: TransactionStatus::Idle,
    };
    script.at(130, 0, 10, replied(100));
    script.exit(130, 10, libc::SYS_sendto, 11);
    script.enter(400, 10, libc::SYS_write, &[4, 0, 11]);
    script.at(410, 0, 10, replied(400));
    script.exit(410, 10, libc::SYS_write, 11);
    let rows = script.end(2_000);
    let of = |kind: CallKind| {
        let mut calls = rows.calls.iter().filter(|call| call.kind == kind);
        *calls.next().expect("it was made")
    };
    let sent = of(CallKind::Send);
    assert_eq!(sent.transaction_status, Some(TransactionStatus::Idle));
    let expected = (100, 130, 11);
    assert_eq!((sent.start_ns, sent.end_ns, sent.size_bytes), expected);
    assert_eq!(of(CallKind::Write).transaction_status, None);
}

#[test]
fn a_message_that_was_begun_before_the_burst_begins_with_it() {
    let mut script = Script::new();
    script.at(5_000, 0, 0, TraceEventKind::BurstStart);
    let replied = TraceEventKind::Replied {
        begun_ns: 4_900,
        status: TransactionStatus::Idle,
    };
    script.at(5_010, 0, 10, replied);
    script.exit(5_010, 10, libc::SYS_sendto, 11);
    let rows = script.end(6_000);
    let times = rows.calls.iter().map(|call| (call.start_ns, call.end_ns));
    assert_eq!(times.collect::<Vec<_>>(), [(5_000, 5_010)]);
}

// Which file a call is about.

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
    let fork = |child, thread| TraceEventKind::Fork {
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
    script.at(11, 0, 10, TraceEventKind::Opened { fd: -1, path });
    script.exit(12, 10, libc::SYS_unlinkat, 0);
    let rows = script.end(100);
    assert_eq!(paths(&script, &rows, CallKind::Resize), ["/db/temp"]);
    assert_eq!(rows.calls[0].offset_bytes, 0);
}
