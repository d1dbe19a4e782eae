//! Recordings made by hand: each thread is told what it does, one thing after the other.

use proptest::prelude::*;
use tierwise_recording::{
    About, Block, BlockOp, Burst, Call, CallKind, Device, File, Machine, NONE, Recording, Role,
    State, StateKind, Thread, ThreadClass, TransactionStatus, UNKNOWN,
};
use tierwise_work::{Step, Work};

/// When the only burst begins.
pub const BEGIN_NS: u64 = 1_000_000;

/// Processor time of some steps.
pub fn cpu_ns(steps: &[Step]) -> u64 {
    let times = steps.iter().map(|step| match step {
        Step::Cpu { time_ns, .. } => u64::from(*time_ns),
        _ => 0,
    });
    times.sum()
}

pub fn work_of(recording: &Recording) -> Work {
    Work::from_recording(recording).expect("a sound recording")
}

/// Number of steps of a kind.
pub fn count(steps: &[Step], is_such: impl Fn(&Step) -> bool) -> usize {
    steps.iter().filter(|step| is_such(step)).count()
}

/// A recording in the making.
pub struct Made {
    recording: Recording,
}

/// A thread in the making.
pub struct Doing<'a> {
    recording: &'a mut Recording,
    thread: u32,
    now_ns: u64,
}

impl Made {
    /// Nothing yet; everything lies on one partition a role.
    pub fn new(engine: &str) -> Self {
        let about = About {
            engine: engine.to_owned(),
            machine: Machine {
                cores: 2,
                memory_bytes: 1 << 30,
                ..Machine::default()
            },
            ..About::default()
        };
        Self {
            recording: Recording {
                about,
                ..Recording::default()
            },
        }
    }

    pub fn thread(&mut self, class: ThreadClass) -> u32 {
        let tid = self.recording.threads.len() as i32 + 100;
        self.recording.threads.push(Thread {
            pid: tid,
            tid,
            name: format!("{class:?}"),
            class,
        });
        self.recording.threads.len() as u32 - 1
    }

    /// A server with one session and one data file of a mebibyte.
    pub fn one_session(engine: &str) -> (Self, u32, u32) {
        let mut made = Self::new(engine);
        let session = made.thread(ThreadClass::Session);
        let data = made.file(Some(Role::Data), 1 << 20);
        (made, session, data)
    }

    pub fn sessions<const COUNT: usize>(&mut self) -> [u32; COUNT] {
        [(); COUNT].map(|()| self.thread(ThreadClass::Session))
    }

    /// A file on a partition of its own.
    pub fn file(&mut self, role: Option<Role>, size_bytes: u64) -> u32 {
        let device = if role.is_some() {
            let devices = &mut self.recording.about.devices;
            devices.push(Device {
                roles: role.into_iter().collect(),
                shared: devices.len() as u32,
                sectors: 1 << 24,
                write_cache: true,
                ..Device::default()
            });
            devices.len() as u32 - 1
        } else {
            NONE
        };
        self.recording.files.push(File {
            path: format!("file {}", self.recording.files.len()),
            role,
            device,
            size_bytes,
        });
        self.recording.files.len() as u32 - 1
    }

    /// Files of a database's log and data.
    pub fn log_and_data(&mut self) -> (u32, u32) {
        let mut file = |role| self.file(Some(role), 1 << 20);
        (file(Role::Log), file(Role::Data))
    }

    /// Another file of the same role, on the same partition.
    pub fn beside(&mut self, file: u32) -> u32 {
        let files = &mut self.recording.files;
        let like = files[file as usize].clone();
        files.push(File {
            path: format!("file {}", files.len()),
            ..like
        });
        files.len() as u32 - 1
    }

    /// The directory of a file.
    pub fn directory_of(&mut self, file: u32) -> u32 {
        let files = &mut self.recording.files;
        files[file as usize].path = "/files/base".to_owned();
        files.push(File {
            path: "/files".to_owned(),
            role: None,
            device: NONE,
            size_bytes: 0,
        });
        files.len() as u32 - 1
    }

    pub fn block(
        &mut self,
        file: u32,
        thread: u32,
        op: BlockOp,
        sector: u64,
        from_to_ns: (u64, u64),
    ) {
        self.recording.blocks.push(Block {
            device: self.recording.files[file as usize].device,
            sector,
            sectors: if op == BlockOp::Flush { 0 } else { 16 },
            op,
            fua: false,
            preflush: false,
            sync: true,
            meta: false,
            issued_ns: BEGIN_NS + from_to_ns.0,
            completed_ns: BEGIN_NS + from_to_ns.1,
            thread,
            file: if op == BlockOp::Flush { NONE } else { file },
        });
    }

    /// A write of the file system's journal on a file's partition.
    pub fn journal(&mut self, file: u32, sector: u64, from_to_ns: (u64, u64)) {
        self.journal_by(NONE, file, sector, from_to_ns);
    }

    /// The same, by a thread.
    pub fn journal_by(&mut self, thread: u32, file: u32, sector: u64, from_to_ns: (u64, u64)) {
        self.block(file, thread, BlockOp::Write, sector, from_to_ns);
        if let Some(block) = self.recording.blocks.last_mut() {
            (block.file, block.meta) = (NONE, true);
        }
    }

    /// A call that its thread does not wait in.
    pub fn asynchronous(
        &mut self,
        thread: u32,
        kind: CallKind,
        file: u32,
        (from_ns, to_ns): (u64, u64),
    ) {
        self.recording.calls.push(Call {
            thread,
            start_ns: BEGIN_NS + from_ns,
            end_ns: BEGIN_NS + to_ns,
            kind,
            file,
            offset_bytes: UNKNOWN,
            size_bytes: 0,
            asynchronous: true,
            failed: false,
            transaction_status: None,
        });
    }

    /// Tells a thread from an instant on, counted from the burst's begin.
    pub fn at(&mut self, thread: u32, from_ns: u64) -> Doing<'_> {
        Doing {
            recording: &mut self.recording,
            thread,
            now_ns: BEGIN_NS + from_ns,
        }
    }

    /// The work of the recording.
    pub fn work(self) -> Work {
        work_of(&self.finish())
    }

    /// The recording, sorted, with one burst over all of it.
    pub fn finish(self) -> Recording {
        let mut recording = self.recording;
        let end_ns = recording
            .states
            .iter()
            .map(|state| state.end_ns)
            .max()
            .unwrap_or(BEGIN_NS);
        recording.sort();
        recording.about.duration_s = (end_ns - BEGIN_NS) as f64 / 1e9;
        recording.about.bursts = vec![Burst {
            start_ns: BEGIN_NS,
            end_ns,
            storage_cpu: None,
        }];
        recording
    }
}

impl Doing<'_> {
    fn state(&mut self, kind: StateKind, time_ns: u64, waker: u32, call: u32) -> &mut Self {
        self.recording.states.push(State {
            thread: self.thread,
            start_ns: self.now_ns,
            end_ns: self.now_ns + time_ns,
            kind,
            cpu: (self.thread % 2) as u16,
            waker,
            call,
        });
        self.now_ns += time_ns;
        self
    }

    /// Time since the burst's begin.
    pub fn now_ns(&self) -> u64 {
        self.now_ns - BEGIN_NS
    }

    pub fn cpu(&mut self, time_ns: u64) -> &mut Self {
        self.state(StateKind::Cpu, time_ns, NONE, NONE)
    }

    /// Waits outside of any call.
    pub fn fault(&mut self, time_ns: u64) -> &mut Self {
        self.state(StateKind::Blocked, time_ns, NONE, NONE)
    }

    /// A call that takes a little time on a core, then waits for somebody.
    pub fn call(
        &mut self,
        kind: CallKind,
        file: u32,
        bytes: (u64, u64),
        wait: (u64, u32),
    ) -> &mut Self {
        self.call_with(kind, file, bytes, &[wait])
    }

    /// A call that waits several times, a little time on a core between the waits.
    pub fn call_with(
        &mut self,
        kind: CallKind,
        file: u32,
        bytes: (u64, u64),
        waits: &[(u64, u32)],
    ) -> &mut Self {
        let number = self.recording.calls.len() as u32;
        let waited_ns: u64 = waits.iter().map(|wait| wait.0 + 1_000).sum();
        self.recording.calls.push(Call {
            thread: self.thread,
            start_ns: self.now_ns,
            end_ns: self.now_ns + 1_000 + waited_ns,
            kind,
            file,
            offset_bytes: bytes.0,
            size_bytes: bytes.1,
            asynchronous: false,
            failed: false,
            transaction_status: None,
        });
        self.state(StateKind::Cpu, 1_000, NONE, number);
        for &(time_ns, waker) in waits {
            if time_ns > 0 {
                self.state(StateKind::Blocked, time_ns, waker, number);
            }
            self.state(StateKind::Cpu, 1_000, NONE, number);
        }
        self
    }

    pub fn receive(&mut self, file: u32, size: u64, wait: (u64, u32)) -> &mut Self {
        self.call(CallKind::Receive, file, (UNKNOWN, size), wait)
    }

    pub fn send(&mut self, file: u32, size: u64) -> &mut Self {
        self.call(CallKind::Send, file, (UNKNOWN, size), (0, NONE))
    }

    /// A reply that tells a status.
    pub fn reply(&mut self, file: u32, size: u64, status: TransactionStatus) -> &mut Self {
        self.send(file, size);
        if let Some(call) = self.recording.calls.last_mut() {
            call.transaction_status = Some(status);
        }
        self
    }

    pub fn read(&mut self, file: u32, bytes: (u64, u64), wait_ns: u64) -> &mut Self {
        self.call(CallKind::Read, file, bytes, (wait_ns, NONE))
    }

    pub fn write(&mut self, file: u32, offset: u64, size: u64) -> &mut Self {
        self.call(CallKind::Write, file, (offset, size), (0, NONE))
    }

    /// Waits for a thread.
    pub fn lock(&mut self, time_ns: u64, waker: u32) -> &mut Self {
        self.call(CallKind::Lock, NONE, (UNKNOWN, 0), (time_ns, waker))
    }

    /// Waits at a socket until a thread sends.
    pub fn poll(&mut self, time_ns: u64, waker: u32) -> &mut Self {
        self.call(CallKind::Poll, NONE, (UNKNOWN, 0), (time_ns, waker))
    }

    /// Truncates a file to nothing.
    pub fn empty(&mut self, file: u32) -> &mut Self {
        self.call(CallKind::Resize, file, (0, 0), (0, NONE))
    }

    pub fn sync(&mut self, file: u32, time_ns: u64) -> &mut Self {
        self.call(CallKind::Sync, file, (UNKNOWN, 0), (time_ns, NONE))
    }
}

// Whatever was recorded, the work is sound.

/// What a thread does next: on a core so long, then a call of a kind on a file, waiting so long for a thread.
type Deed = (u64, usize, u32, u64, u64, u32);

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = (
        1_u64..50_000,
        0..CallKind::ALL.len(),
        0_u32..4,
        0_u64..100_000,
        prop_oneof![Just(0), 1_u64..12_000_000],
        0_u32..5,
    );
    prop::collection::vec(deed, 1..60)
}

fn recording(engine: &str, threads: &[Vec<Deed>]) -> Recording {
    let mut made = Made::new(engine);
    let classes = [
        ThreadClass::Session,
        ThreadClass::Session,
        ThreadClass::Client,
        ThreadClass::Background,
    ];
    for class in classes {
        made.thread(class);
    }
    for role in [
        Some(Role::Log),
        Some(Role::Data),
        Some(Role::Doublewrite),
        None,
    ] {
        made.file(role, 1 << 20);
    }
    for (thread, deeds) in threads.iter().enumerate() {
        let mut now_ns = 0;
        for &(cpu_ns, kind, file, bytes, wait_ns, waker) in deeds {
            let waker = if waker < 4 { waker } else { NONE };
            let begin_ns = now_ns + cpu_ns;
            made.at(thread as u32, now_ns).cpu(cpu_ns).call(
                CallKind::ALL[kind],
                file,
                (bytes & !511, bytes),
                (wait_ns, waker),
            );
            if wait_ns > 0 && file < 3 {
                let op = if bytes % 2 == 0 {
                    BlockOp::Read
                } else {
                    BlockOp::Flush
                };
                made.block(
                    file,
                    thread as u32,
                    op,
                    bytes,
                    (begin_ns + 500, begin_ns + wait_ns),
                );
            }
            now_ns = begin_ns + wait_ns + 2_000;
        }
    }
    made.finish()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn turns_follow_each_other_and_no_time_on_a_core_is_invented(
        threads in prop::collection::vec(deeds(), 4),
        engine in prop::sample::select(vec!["postgres", "sqlite", "rocksdb", "mine"]),
    ) {
        let recording = recording(engine, &threads);
        let Ok(work) = Work::from_recording(&recording) else {
            return Ok(());
        };
        let mut ran_ns = 0;
        for session in &work.sessions {
            let mut next = 0;
            for turn in &session.turns {
                prop_assert_eq!(turn.first_step, next);
                prop_assert!(turn.tail_steps <= turn.steps);
                next += turn.steps;
            }
            prop_assert_eq!(next as usize, session.steps.len());
            for step in &session.steps {
                if let Step::Cpu { time_ns, client: false, .. } = step {
                    ran_ns += u64::from(*time_ns);
                }
            }
        }
        let on_core = recording.states.iter().filter(|state| state.kind == StateKind::Cpu);
        let recorded_ns: u64 = on_core.map(|state| state.end_ns - state.start_ns).sum();
        prop_assert!(ran_ns <= recorded_ns + work.sessions.len() as u64);
        let shares: f64 = work.observed.shares.iter().map(|(_, share)| share).sum();
        prop_assert!((shares - 1.0).abs() < 1e-9);
    }
}
