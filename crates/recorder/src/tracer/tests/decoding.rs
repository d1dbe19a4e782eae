//! Records of the programs become events.

use tierwise_recording::BlockOp;
use tierwise_recording::TransactionStatus::{self, Idle, Unknown};

use crate::host::processes::LiveThread;
use crate::trace_event::{BlockRequest, SwitchedOutState, TraceEvent, TraceEventKind};
use crate::tracer::client_threads_in_burst;
use crate::tracer::kernel_record::{ENDED, EXIT, FORK, ISSUE, KernelRecord, REPLY, SWITCH, WAKING};
use crate::tracer::opens::{OpenCall, OpenCalls};
use crate::tracer::raw_burst::{CoreRecordStream, RawBurst, StreamSpool, merged_records};
use crate::tracer::replies::WaitingReplies;

fn record(time_ns: u64, kind: u8, tid: i32, number: u32, words: &[u64]) -> KernelRecord {
    KernelRecord {
        time_ns,
        kind,
        tid,
        number,
        words: std::array::from_fn(|at| words.get(at).copied().unwrap_or(0)),
        ..KernelRecord::default()
    }
}

fn live(tid: i32) -> LiveThread {
    LiveThread {
        pid: tid,
        tid,
        name: String::new(),
        process: String::new(),
        command_line: String::new(),
    }
}

pub fn stream(cpu: u16, records: impl IntoIterator<Item = KernelRecord>) -> CoreRecordStream {
    let mut spool = StreamSpool::new(1 << 20, &std::env::temp_dir()).expect("room for a file");
    let mut stream = CoreRecordStream::new(cpu);
    for record in records {
        stream.push(record, &mut spool).expect("memory");
    }
    stream
}

/// A burst of thread 7 in which threads are woken: flags, waker, woken.
fn burst_of_wakes(wakes: &[(u8, i32, i32)]) -> RawBurst {
    let woken = |&(flags, waker, woken): &(u8, i32, i32)| KernelRecord {
        flags,
        ..record(1, WAKING, waker, 0, &[woken as u64])
    };
    RawBurst {
        end_ns: 100,
        threads: vec![live(7)],
        streams: vec![stream(0, wakes.iter().map(woken))],
        ..RawBurst::default()
    }
}

#[test]
fn switches_tell_how_the_thread_left() {
    let states = [
        (0, SwitchedOutState::Runnable),
        (0x100, SwitchedOutState::Runnable),
        (1, SwitchedOutState::Sleeping),
        (2, SwitchedOutState::Disk),
        (0x82, SwitchedOutState::Disk),
        (4, SwitchedOutState::Stopped),
        (0x10, SwitchedOutState::Dead),
    ];
    for (bits, expected) in states {
        let switch = record(5, SWITCH, 7, bits, &[9]);
        let event = switch.event(1).expect("known");
        let kind = TraceEventKind::Switch {
            previous: 7,
            state: expected,
            next: 9,
        };
        assert_eq!((event.tid, event.cpu, event.kind), (7, 1, kind));
    }
}

#[test]
fn results_below_zero_stay_so() {
    let exit = record(5, EXIT, 8, 17, &[(-11_i64).cast_unsigned()]);
    let kind = TraceEventKind::Exit {
        number: 17,
        result: -11,
    };
    assert_eq!(exit.event(0).expect("known").kind, kind);
}

#[test]
fn a_thread_has_the_name_before_the_first_zero() {
    let words = [*b"postgres", *b": x\0\0\0\0\0"].map(u64::from_ne_bytes);
    let fork = KernelRecord {
        flags: 1,
        ..record(5, FORK, 8, 9, &words)
    };
    let kind = TraceEventKind::Fork {
        child: 9,
        name: "postgres: x".to_owned(),
        thread: true,
    };
    assert_eq!(fork.event(0).expect("known").kind, kind);
}

#[test]
fn a_request_is_what_its_number_and_flags_say() {
    let request = |number: u32, flags: u8, sector: u64| {
        let record = KernelRecord {
            flags,
            ..record(5, ISSUE, 8, number, &[8 << 20, sector, 16])
        };
        match record.event(0).map(|event| event.kind) {
            Some(TraceEventKind::Issue(request)) => Some(request),
            _ => None,
        }
    };
    for (number, flags, letters) in [
        (0, 0, "R"),
        (1, 1 | 2 | 4 | 8, "FWFSM"),
        (3, 0, "D"),
        (5, 4, "DS"),
    ] {
        let expected = BlockRequest::of(8 << 20, 100, 16, letters);
        assert_eq!(request(number, flags, 100), Some(expected), "{letters}");
    }
    let flush = request(2, 1, u64::MAX).expect("a flush");
    assert_eq!(
        (flush.sector, flush.op, flush.preflush),
        (0, BlockOp::Flush, true)
    );
    assert_eq!(request(9, 0, 100), None);
}

#[test]
fn unknown_records_are_left_out() {
    assert_eq!(record(5, 99, 8, 1, &[2, 3]).event(0), None);
}

#[test]
fn streams_merge_by_time_and_the_earlier_stream_goes_first() {
    let ended = |time_ns| record(time_ns, ENDED, 1, 0, &[]);
    let streams = [
        stream(0, [1, 4].map(ended)),
        stream(1, []),
        stream(2, [1, 2, 4].map(ended)),
    ];
    let order = merged_records(&streams).map(|(cpu, record)| (record.time_ns, cpu));
    let expected = [(1, 0), (1, 2), (2, 2), (4, 0), (4, 2)];
    assert_eq!(order.collect::<Vec<_>>(), expected);
}

#[test]
fn a_burst_has_what_lies_between_its_edges() {
    let wake = |time_ns| record(time_ns, WAKING, 8, 1, &[7]);
    let streams = [(0, [100, 110, 120]), (1, [105, 115, 205])];
    let streams = streams.map(|(cpu, times)| stream(cpu, times.map(wake)));
    let burst = RawBurst {
        start_ns: 105,
        end_ns: 120,
        streams: streams.into(),
        ..RawBurst::default()
    };
    let mut events = Vec::new();
    let decoded = burst.decode(|event| events.push((event.time_ns, event.cpu, event.kind)));
    assert_eq!(decoded.events, 4);
    let times = events.iter().map(|(time_ns, cpu, _)| (*time_ns, *cpu));
    let expected = [(105, 0), (105, 1), (110, 0), (115, 1), (120, 0), (120, 0)];
    assert_eq!(times.collect::<Vec<_>>(), expected);
    assert_eq!(events[0].2, TraceEventKind::BurstStart);
    assert_eq!(events[5].2, TraceEventKind::BurstEnd);
}

#[test]
fn a_client_that_sends_through_the_loopback_is_the_waker() {
    let (soft, hard) = (2, 1);
    let wakes = [(soft, 8), (soft | hard, 8), (soft, 7), (soft, 0), (0, 8)];
    let burst = burst_of_wakes(&wakes.map(|(flags, waker)| (flags, waker, 7)));
    let mut interrupts = Vec::new();
    burst.decode(|event| {
        if let TraceEventKind::Waking { interrupt, .. } = event.kind {
            interrupts.push(interrupt);
        }
    });
    assert_eq!(interrupts, [false, true, true, true, false]);
}

#[test]
fn a_client_wakes_the_target_and_is_woken_by_it() {
    let (soft, own) = (2, std::process::id() as i32);
    let talk = [(0, own, 7), (0, own, 7), (0, 7, own)];
    let disturbed = [(soft, 8, 7), (soft, 8, 7), (0, 9, 7), (0, 7, 9)];
    let burst = burst_of_wakes(&[&talk[..], &disturbed].concat());
    assert_eq!(client_threads_in_burst(&burst), [own]);
}

#[test]
fn what_a_stranger_opened_before_a_burst_is_not_recorded() {
    let open = |tid: i32, path: &str| OpenCall {
        time_ns: 50,
        pid: tid,
        tid,
        result: 3,
        path: path.to_owned(),
    };
    let mut burst = RawBurst {
        start_ns: 100,
        end_ns: 200,
        threads: vec![live(7)],
        ..RawBurst::default()
    };
    burst.hear(vec![open(7, "/ours"), open(8, "/secret")]);
    assert_eq!(burst.paths().into_iter().collect::<Vec<_>>(), ["/ours"]);
}

// Paths and statuses meet the ends of their calls.

fn exit(time_ns: u64, tid: i32, number: libc::c_long, result: i64) -> TraceEvent {
    let number = number as u32;
    TraceEvent {
        time_ns,
        cpu: 0,
        tid,
        kind: TraceEventKind::Exit { number, result },
    }
}

fn open(time_ns: u64, tid: i32, result: i64, path: &str) -> OpenCall {
    OpenCall {
        time_ns,
        pid: tid,
        tid,
        result,
        path: path.into(),
    }
}

/// The number and path of a file that a call of thread 5 opened.
fn opened(
    opens: &mut OpenCalls<'_>,
    time_ns: u64,
    number: libc::c_long,
    result: i64,
) -> Option<(i32, String)> {
    match opens.before(&exit(time_ns, 5, number, result))?.kind {
        TraceEventKind::Opened { fd, path } => Some((fd, path)),
        _ => None,
    }
}

#[test]
fn an_open_belongs_to_the_call_that_ended_with_it() {
    let heard = [
        open(1_000, 5, 3, "/a"),
        open(9_000, 5, 3, "/b"),
        open(1_000, 6, 3, "/c"),
    ];
    let mut opens = OpenCalls::new(&heard);
    let file = |path: &str| Some((3, path.to_owned()));
    assert_eq!(opened(&mut opens, 1_000, libc::SYS_openat, 3), file("/a"));
    assert_eq!(opened(&mut opens, 1_000, libc::SYS_read, 3), None);
    assert_eq!(opened(&mut opens, 9_000, libc::SYS_openat, 3), file("/b"));
    assert_eq!((opens.seen, opens.unresolved), (2, 0));
}

#[test]
fn an_open_without_a_path_counts_as_unresolved() {
    let heard = [open(1_000, 5, 3, "/a")];
    let mut opens = OpenCalls::new(&heard);
    for result in [3, -2] {
        assert_eq!(opened(&mut opens, 1_001, libc::SYS_openat, result), None);
    }
    assert_eq!((opens.seen, opens.unresolved), (1, 1));
}

#[test]
fn a_removal_names_its_file_without_a_number() {
    let heard = [open(1_000, 5, 0, "/gone")];
    let mut opens = OpenCalls::new(&heard);
    let removed = opened(&mut opens, 1_000, libc::SYS_unlinkat, 0);
    assert_eq!(removed, Some((-1, "/gone".into())));
    assert_eq!(opens.seen, 0);
}

/// A call that sends a message of this length, which ends with `tail`.
fn send(time_ns: u64, tid: i32, length_bytes: u64, tail: [u8; 8]) -> KernelRecord {
    record(
        time_ns,
        REPLY,
        tid,
        0,
        &[length_bytes, u64::from_ne_bytes(tail)],
    )
}

const READY: [u8; 8] = [b'C', 0, b'Z', 0, 0, 0, 5, b'I'];

/// When the call of an exit of `send` began, and how its data ends.
fn replied(
    replies: &mut WaitingReplies,
    time_ns: u64,
    number: libc::c_long,
    result: i64,
) -> Placed {
    match replies.before(&exit(time_ns, 5, number, result))?.kind {
        TraceEventKind::Replied { begun_ns, status } => Some((begun_ns, status)),
        _ => None,
    }
}

type Placed = Option<(u64, TransactionStatus)>;

#[test]
fn each_exit_gets_what_its_own_thread_sent_last() {
    let mut replies = WaitingReplies::default();
    for sent in [
        send(1_000, 5, 11, [0; 8]),
        send(1_200, 6, 90, READY),
        send(8_000, 5, 20, READY),
    ] {
        replies.begin(&sent);
    }
    assert_eq!(replied(&mut replies, 8_100, libc::SYS_read, 20), None);
    assert_eq!(
        replied(&mut replies, 8_200, libc::SYS_sendto, 20),
        Some((8_000, Idle))
    );
    assert_eq!(replied(&mut replies, 9_900, libc::SYS_sendto, 20), None);
}

#[test]
fn what_was_sent_in_part_or_is_short_has_no_status() {
    let mut replies = WaitingReplies::default();
    replies.begin(&send(1_000, 5, 20, READY));
    assert_eq!(replied(&mut replies, 1_900, libc::SYS_sendto, 10), None);
    replies.begin(&send(2_000, 5, 7, [0; 8]));
    let short = replied(&mut replies, 2_100, libc::SYS_sendto, 7);
    assert_eq!(short, Some((2_000, Unknown)));
}
