//! A recording of a few bursts, with a row of every kind.

use std::path::PathBuf;

use tierwise_recording::{
    About, Block, BlockOp, Burst, BurstRows, Call, CallKind, Cost, Device, File, Machine, NONE,
    Recording, Role, State, StateKind, Thread, ThreadClass, TransactionStatus, UNKNOWN, Writer,
};

/// A folder for one test, gone with it.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tierwise-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn about() -> About {
    about_of(3)
}

/// Of so many bursts.
pub fn about_of(bursts: u64) -> About {
    About {
        started_at: "2026-11-21T12:00:00Z".to_owned(),
        engine: "postgres".to_owned(),
        machine: Machine {
            cores: 2,
            memory_bytes: 1 << 34,
            ..Machine::default()
        },
        duration_s: 0.3,
        bursts: (0..bursts)
            .map(|burst| Burst {
                start_ns: burst * 1000,
                end_ns: burst * 1000 + 500,
                storage_cpu: None,
            })
            .collect(),
        devices: vec![Device {
            name: "loop0".to_owned(),
            roles: vec![Role::Log],
            sectors: 1 << 20,
            ..Device::default()
        }],
        cost: Some(Cost {
            rate_ratio: 0.98,
            rate_ratio_low: 0.97,
            rate_ratio_high: 0.99,
            ..Cost::default()
        }),
        ..About::default()
    }
}

pub fn threads() -> Vec<Thread> {
    let classes = ThreadClass::ALL.iter().enumerate();
    classes
        .map(|(at, &class)| Thread {
            pid: 10,
            tid: 10 + at as i32,
            name: format!("thread {at} ü"),
            class,
        })
        .collect()
}

pub fn files() -> Vec<File> {
    let roles = Role::ALL.iter().copied().map(Some).chain([None]);
    roles
        .map(|role| File {
            path: format!("/data/{role:?}"),
            role,
            device: if role.is_some() { 0 } else { NONE },
            size_bytes: 8192,
        })
        .collect()
}

/// Rows of burst `number`: every thread runs, waits in a call, and waits for its turn.
pub fn burst(number: u64) -> BurstRows {
    let mut rows = BurstRows::default();
    for thread in 0..ThreadClass::ALL.len() as u32 {
        let start_ns = number * 1000 + u64::from(thread);
        for (at, &kind) in (0..).zip(StateKind::ALL) {
            let blocked = kind == StateKind::Blocked;
            rows.states.push(State {
                thread,
                start_ns: start_ns + 100 * at,
                end_ns: start_ns + 100 * (at + 1),
                kind,
                cpu: 1,
                waker: if blocked { 0 } else { NONE },
                call: if blocked {
                    rows.calls.len() as u32
                } else {
                    NONE
                },
            });
        }
        for (at, &kind) in (0..).zip(CallKind::ALL) {
            rows.calls.push(Call {
                thread,
                start_ns: start_ns + 10 * at,
                end_ns: start_ns + 10 * at + 5,
                kind,
                file: if at % 2 == 0 { 1 } else { NONE },
                offset_bytes: if at % 3 == 0 { UNKNOWN } else { 4096 * at },
                size_bytes: 8192,
                asynchronous: at == 3,
                failed: at == 4,
                transaction_status: (kind == CallKind::Send).then(|| {
                    let all = TransactionStatus::ALL;
                    all[(number + u64::from(thread)) as usize % all.len()]
                }),
            });
        }
    }
    rows.blocks = (0..)
        .zip(BlockOp::ALL)
        .map(|(at, &op)| block(number, at, op))
        .collect();
    rows
}

fn block(number: u64, at: u64, op: BlockOp) -> Block {
    Block {
        device: 0,
        sector: if op == BlockOp::Flush {
            UNKNOWN
        } else {
            8 * at
        },
        sectors: 8,
        op,
        fua: at == 1,
        preflush: at == 2,
        sync: true,
        meta: at == 3,
        issued_ns: number * 1000 + at,
        completed_ns: number * 1000 + at + 50,
        thread: if at == 0 { NONE } else { 1 },
        file: if at == 0 { NONE } else { 2 },
    }
}

/// Three bursts, written as they come.
pub fn write(folder: &Folder) {
    let mut writer = Writer::create(&folder.0).unwrap();
    for number in 0..3 {
        writer.burst(burst(number)).unwrap();
    }
    writer.finish(about(), threads(), files()).unwrap();
}

/// The same in memory, in the order that a reader gives.
pub fn recording(folder: &Folder) -> Recording {
    write(folder);
    Recording::read(&folder.0).unwrap()
}
