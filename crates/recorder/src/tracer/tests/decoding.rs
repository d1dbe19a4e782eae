//! Records of tracepoints become events.

use tierwise_recording::TransactionStatus::{self, Idle, InTransaction, Unknown};

use super::pages::PageBuilder;
use crate::event::{Event, EventKind, SwitchState};
use crate::host::processes::LiveThread;
use crate::tracer::clients_in;
use crate::tracer::decode::{Decoder, Format, Meaning};
use crate::tracer::opens::{Open, Opens};
use crate::tracer::raw_burst::{RawBurst, Spool, Stream, merged};
use crate::tracer::replies::{Replies, Reply};

const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n";

/// With fields as `DECLARATION OFFSET SIZE SIGNED`.
fn format(id: u16, fields: &[&str]) -> Format {
    let mut text = format!("name: x\nID: {id}\nformat:\n{COMMON}\n");
    for field in fields {
        let mut words = field.rsplitn(4, ' ');
        let [signed, size, offset, declaration] = [(); 4].map(|()| words.next().expect("four"));
        text +=
            &format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
    }
    Format::parse(&text).expect("written as the kernel does")
}

/// A record: number, flags, thread, then words of four bytes.
fn record(id: u16, flags: u8, tid: i32, words: &[u32]) -> Vec<u8> {
    let mut bytes = id.to_ne_bytes().to_vec();
    bytes.extend([flags, 0]);
    bytes.extend(tid.to_ne_bytes());
    words
        .iter()
        .for_each(|word| bytes.extend(word.to_ne_bytes()));
    bytes
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

/// A stream of one page, with records at these distances in time.
fn stream<'a>(
    cpu: u16,
    start_ns: u64,
    records: impl IntoIterator<Item = (u32, &'a [u8])>,
) -> Stream {
    let page = records
        .into_iter()
        .fold(PageBuilder::at(start_ns), |page, (delta, record)| {
            page.short(delta, record)
        });
    let mut spool = Spool::new(1 << 20, &std::env::temp_dir()).expect("room for a file");
    let mut stream = Stream::new(cpu);
    stream.push(&page.finish(), &mut spool).expect("memory");
    stream
}

/// A burst of thread 7 in which threads are woken: flags, waker, woken.
fn burst_of_wakes(wakes: &[(u8, i32, i32)]) -> RawBurst {
    let wakes = wakes.iter();
    let records: Vec<_> = wakes
        .map(|&(flags, waker, woken)| record(2, flags, waker, &[woken.cast_unsigned(), 0]))
        .collect();
    RawBurst {
        end_ns: 100,
        threads: vec![live(7)],
        streams: vec![stream(0, 1, records.iter().map(|record| (1, &record[..])))],
        ..RawBurst::default()
    }
}

fn decoder() -> Decoder {
    let switch = [
        "pid_t prev_pid 8 4 1",
        "long prev_state 12 4 1",
        "char next_comm[16] 16 4 0",
        "pid_t next_pid 20 4 1",
    ];
    let waking = ["pid_t pid 8 4 1", "int target_cpu 12 4 1"];
    let (number, result) = ("int __syscall_nr 8 4 1", "long ret 12 4 1");
    let mut decoder = Decoder::default();
    assert!(decoder.learn(Meaning::Switch, &format(1, &switch)));
    assert!(decoder.learn(Meaning::Waking, &format(2, &waking)));
    assert!(decoder.learn(Meaning::Enter, &format(3, &[number])));
    assert!(decoder.learn(Meaning::Exit, &format(4, &[number, result])));
    decoder
}

#[test]
fn a_format_is_read_as_the_kernel_writes_it() {
    let fields = ["const char * filename 24 8 0", "char rwbs[10] 34 10 0"];
    let format = format(77, &fields);
    assert_eq!(format.id, 77);
    assert_eq!(format.field("filename").map(|field| field.offset), Some(24));
    assert_eq!(format.field("rwbs").map(|field| field.size), Some(10));
    assert_eq!(format.field("missing"), None);
    assert_eq!(Format::parse("no format"), None);
}

#[test]
fn a_tracepoint_without_a_needed_field_is_refused() {
    let lacking = format(5, &["pid_t prev_pid 8 4 1"]);
    assert!(!Decoder::default().learn(Meaning::Switch, &lacking));
}

#[test]
fn switches_tell_how_the_thread_left() {
    let states = [
        (0, SwitchState::Runnable),
        (0x100, SwitchState::Runnable),
        (1, SwitchState::Sleeping),
        (2, SwitchState::Disk),
        (0x82, SwitchState::Disk),
        (4, SwitchState::Stopped),
        (0x10, SwitchState::Dead),
    ];
    for (bits, expected) in states {
        let event = decoder()
            .decode(1, 5, &record(1, 0, 8, &[7, bits, 0, 9]))
            .expect("known");
        let kind = EventKind::Switch {
            previous: 7,
            state: expected,
            next: 9,
        };
        assert_eq!((event.tid, event.cpu, event.kind), (7, 1, kind));
    }
}

#[test]
fn results_below_zero_stay_so_and_arguments_are_told() {
    let exit = decoder().decode(0, 5, &record(4, 0, 8, &[17, (-11_i32).cast_unsigned()]));
    let kind = EventKind::Exit {
        number: 17,
        result: -11,
    };
    assert_eq!(exit.expect("known").kind, kind);
    let enter = decoder().decode(0, 5, &record(3, 0, 8, &[17, 0, 6, 0, 0x1000, 1]));
    let kind = EventKind::Enter {
        number: 17,
        arguments: [6, 0x1_0000_1000, 0, 0, 0, 0],
    };
    assert_eq!(enter.expect("known").kind, kind);
}

#[test]
fn unknown_and_short_records_are_left_out() {
    assert_eq!(decoder().decode(0, 5, &record(99, 0, 8, &[1, 2, 3])), None);
    let whole = record(1, 0, 8, &[7, 0, 0, 9]);
    for length in 0..whole.len() {
        assert_eq!(decoder().decode(0, 5, &whole[..length]), None);
    }
}

#[test]
fn streams_merge_by_time_and_the_earlier_stream_goes_first() {
    let [a, c] = [[b'a'; 4], [b'c'; 4]];
    let streams = [
        stream(0, 0, [(1, &a[..]), (3, &a)]),
        stream(1, 0, []),
        stream(2, 0, [(1, &c[..]), (1, &c), (2, &c)]),
    ];
    let order = merged(&streams).map(|(time_ns, cpu, record)| (time_ns, cpu, record[0]));
    let expected = [
        (1, 0, b'a'),
        (1, 2, b'c'),
        (2, 2, b'c'),
        (4, 0, b'a'),
        (4, 2, b'c'),
    ];
    assert_eq!(order.collect::<Vec<_>>(), expected);
}

#[test]
fn a_burst_has_what_lies_between_its_edges() {
    let wake = record(2, 0, 8, &[7, 1]);
    let streams = [(0, [0, 10, 10]), (1, [5, 10, 90])];
    let streams =
        streams.map(|(cpu, deltas)| stream(cpu, 100, deltas.map(|delta| (delta, &wake[..]))));
    let burst = RawBurst {
        start_ns: 105,
        end_ns: 120,
        streams: streams.into(),
        ..RawBurst::default()
    };
    let mut events = Vec::new();
    let decoded = burst.decode(&decoder(), |event| {
        events.push((event.time_ns, event.cpu, event.kind))
    });
    assert_eq!(decoded.events, 4);
    let times = events.iter().map(|(time_ns, cpu, _)| (*time_ns, *cpu));
    let expected = [(105, 0), (105, 1), (110, 0), (115, 1), (120, 0), (120, 0)];
    assert_eq!(times.collect::<Vec<_>>(), expected);
    assert_eq!(events[0].2, EventKind::BurstStart);
    assert_eq!(events[5].2, EventKind::BurstEnd);
}

#[test]
fn a_client_that_sends_through_the_loopback_is_the_waker() {
    let (soft, hard) = (0x10, 0x08);
    let wakes = [(soft, 8), (soft | hard, 8), (soft, 7), (soft, 0), (0, 8)];
    let burst = burst_of_wakes(&wakes.map(|(flags, waker)| (flags, waker, 7)));
    let mut interrupts = Vec::new();
    burst.decode(&decoder(), |event| {
        if let EventKind::Waking { interrupt, .. } = event.kind {
            interrupts.push(interrupt);
        }
    });
    assert_eq!(interrupts, [false, true, true, true, false]);
}

#[test]
fn a_client_wakes_the_target_and_is_woken_by_it() {
    let (soft, own) = (0x10, std::process::id() as i32);
    let talk = [(0, own, 7), (0, own, 7), (0, 7, own)];
    let disturbed = [(soft, 8, 7), (soft, 8, 7), (0, 9, 7), (0, 7, 9)];
    let burst = burst_of_wakes(&[&talk[..], &disturbed].concat());
    assert_eq!(clients_in(&burst, &decoder()), [own]);
}

#[test]
fn what_a_stranger_opened_before_a_burst_is_not_recorded() {
    let open = |tid: i32, path: &str| Open {
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
fn replied(replies: &mut Replies<'_>, time_ns: u64, tid: i32, result: i64) -> Placed {
    match replies
        .before(&exit(time_ns, tid, libc::SYS_sendto, result))?
        .kind
    {
        EventKind::Replied { begun_ns, status } => Some((begun_ns, status)),
        _ => None,
    }
}

type Placed = Option<(u64, TransactionStatus)>;

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
