//! A leader that flushes the log, two followers, a thread that waits for a lock, and a page fault.

use tierwise_recording::{
    Block, BlockOp, Burst, Call, CallKind, File, NONE, Recording, Role, State, StateKind, Thread,
    ThreadClass, UNKNOWN,
};

use super::{Breakdown, TimeCategory, breakdown};

const LEADER: u32 = 0;
const LOG: u32 = 0;
const DATA: u32 = 1;

#[derive(Default)]
struct Builder {
    recording: Recording,
}

impl Builder {
    fn thread(&mut self, class: ThreadClass) -> u32 {
        let threads = &mut self.recording.threads;
        let tid = threads.len() as i32;
        threads.push(Thread {
            pid: 1,
            tid,
            name: "thread".to_owned(),
            class,
        });
        tid as u32
    }

    fn file(&mut self, path: &str, role: Role) {
        self.recording.files.push(File {
            path: path.to_owned(),
            role: Some(role),
            device: 0,
            size_bytes: 4096,
        });
    }

    fn call(&mut self, thread: u32, kind: CallKind, file: u32, (start, end): (u64, u64)) -> u32 {
        self.recording.calls.push(Call {
            thread,
            start_ns: start * 1000,
            end_ns: end * 1000,
            kind,
            file,
            offset_bytes: UNKNOWN,
            size_bytes: 0,
            asynchronous: false,
            failed: false,
            transaction_status: None,
        });
        self.recording.calls.len() as u32 - 1
    }

    /// On a core up to `from`, blocked until `to`, then on a core until the end at 1,000 µs.
    fn waits(&mut self, thread: u32, call: u32, (from, to): (u64, u64), waker: u32) {
        let parts = [
            (0, from, StateKind::Cpu, NONE, NONE),
            (from, to, StateKind::Blocked, waker, call),
            (to, 1000, StateKind::Cpu, NONE, NONE),
        ];
        for (start, end, kind, waker, call) in parts {
            self.recording.states.push(State {
                thread,
                start_ns: start * 1000,
                end_ns: end * 1000,
                kind,
                cpu: 0,
                waker,
                call,
            });
        }
    }
}

/// Three sessions wait for the leader's flush of 100 to 500 µs: it wakes two of them right after it, and one
/// later for a lock that it holds longer; another session reads pages.
fn recorded() -> Recording {
    let mut made = Builder::default();
    made.recording.about.machine.cores = 2;
    made.recording.about.bursts.push(Burst {
        start_ns: 0,
        end_ns: 1_000_000,
        storage_cpu: None,
    });
    made.file("/db/log", Role::Log);
    made.file("/db/data", Role::Data);
    for _ in 0..5 {
        made.thread(ThreadClass::Session);
    }
    let flush = made.call(LEADER, CallKind::Sync, LOG, (100, 500));
    for at in [504, 507, 640] {
        made.call(LEADER, CallKind::Lock, NONE, (at, at + 2));
    }
    made.waits(LEADER, flush, (110, 490), NONE);
    for (thread, woken) in [(1, 505), (2, 508), (3, 641)] {
        let call = made.call(thread, CallKind::Lock, NONE, (200, woken + 5));
        made.waits(thread, call, (205, woken), LEADER);
    }
    made.waits(4, NONE, (300, 700), NONE);
    made.recording.blocks.push(Block {
        device: 0,
        sector: 8,
        sectors: 8,
        op: BlockOp::Read,
        fua: false,
        preflush: false,
        sync: false,
        meta: false,
        issued_ns: 295_000,
        completed_ns: 690_000,
        thread: 4,
        file: DATA,
    });
    made.recording
}

fn time_us(found: &Breakdown, category: TimeCategory, role: Option<Role>) -> u64 {
    let slices = &found.classes[0].slices;
    let slice = slices
        .iter()
        .find(|slice| (slice.category, slice.role) == (category, role));
    slice.map_or(0, |slice| (slice.time_s * 1e6).round() as u64)
}

#[test]
fn waits_go_to_what_ended_them() {
    let found = breakdown(&recorded());
    assert_eq!(
        time_us(&found, TimeCategory::LogDevice, Some(Role::Log)),
        380
    );
    let followers = (505 - 205) + (508 - 205);
    assert_eq!(
        time_us(&found, TimeCategory::LogQueue, Some(Role::Log)),
        followers
    );
    assert_eq!(time_us(&found, TimeCategory::Lock, None), 641 - 205);
    assert_eq!(time_us(&found, TimeCategory::Read, Some(Role::Data)), 400);
}

#[test]
fn parts_sum_to_the_time_of_every_class() {
    let found = breakdown(&recorded());
    assert_eq!(found.sum_error, 0.0);
    let class = &found.classes[0];
    assert_eq!((class.class, class.threads), ("session", 5));
    let shares: f64 = class.slices.iter().map(|slice| slice.share).sum();
    assert!((shares - 1.0).abs() < 1e-9);
    let log = &found.roles[0];
    assert_eq!((log.role, log.syncs), (Some(Role::Log), 1));
    assert_eq!(found.files[0].path, "/db/log", "with the followers' time");
}

#[test]
fn a_session_that_only_looks_on_is_no_part_of_the_load() {
    let mut made = Builder {
        recording: recorded(),
    };
    let idle = made.thread(ThreadClass::Session);
    let wait = made.call(idle, CallKind::Receive, NONE, (0, 1000));
    made.waits(idle, wait, (1, 999), NONE);
    let found = breakdown(&made.recording);
    let counts: Vec<_> = found
        .classes
        .iter()
        .map(|one| (one.class, one.threads))
        .collect();
    assert_eq!(counts, [("session", 5), ("other", 1)]);
    assert_eq!(time_us(&found, TimeCategory::Client, None), 0);
}

#[test]
fn a_gap_in_a_thread_s_states_is_an_error_of_its_sum() {
    let mut recording = recorded();
    recording.states.remove(1);
    let found = breakdown(&recording);
    assert!((found.sum_error - 0.38).abs() < 1e-9, "{}", found.sum_error);
}

#[test]
fn an_empty_recording_has_no_classes() {
    let found = breakdown(&Recording::default());
    assert!(found.classes.is_empty() && found.files.is_empty());
}

#[test]
fn a_wait_for_asynchronous_calls_is_for_the_first_to_be_done() {
    let mut made = Builder::default();
    made.file("/db/log", Role::Log);
    made.file("/db/data", Role::Data);
    let session = made.thread(ThreadClass::Session);
    let wait = made.call(session, CallKind::Await, NONE, (90, 310));
    // The woken thread itself reports the completed read, after its wakeup at 300.
    for (kind, file, span) in [
        (CallKind::Write, LOG, (80, 900)),
        (CallKind::Read, DATA, (85, 304)),
    ] {
        let call = made.call(session, kind, file, span);
        made.recording.calls[call as usize].asynchronous = true;
    }
    made.waits(session, wait, (100, 300), NONE);
    let found = breakdown(&made.recording);
    assert_eq!(time_us(&found, TimeCategory::Read, Some(Role::Data)), 200);
}

#[test]
fn a_client_whose_calls_are_not_traced_waits_for_its_server() {
    let mut made = Builder::default();
    let client = made.thread(ThreadClass::Client);
    made.waits(client, NONE, (100, 300), NONE);
    assert_eq!(
        time_us(&breakdown(&made.recording), TimeCategory::Client, None),
        200
    );
}
