//! Reads the last bytes that recorded processes send while a burst lasts, from BPF programs at those calls.

use std::fs;
use std::io;
use std::path::Path;

use super::bpf::{Attachment, Map, Program, Ring};
use super::format::Format;
use super::open_watch::allow_locked_memory;
use super::reply_program::{self, KEY_BYTES, Sent};

/// The call with which servers reply: PostgreSQL, MySQL and MariaDB use `send`, which is this call. Data sent
/// by another call has no status.
const SEND: &str = "syscalls/sys_enter_sendto";
/// Where a process or thread begins.
const FORK: &str = "task/task_newtask";

/// Buffer for unread records, of 40 bytes.
const RING_BYTES: u32 = 4 << 20;
/// Processes that may be recorded at once.
const PROCESSES: u32 = 16_384;

/// Programs that the kernel has accepted, not running yet.
pub struct ReplyWatch {
    ring: Ring,
    recorded: Map,
    programs: [(u16, Program); 2],
}

impl ReplyWatch {
    /// Loads the programs for the calls that this kernel has.
    pub fn load(tracefs: &Path) -> io::Result<Self> {
        let format = |event: &str| {
            let path = tracefs.join("events").join(event).join("format");
            Format::parse(&fs::read_to_string(path).ok()?)
        };
        allow_locked_memory();
        let ring = Ring::new(RING_BYTES)?;
        let recorded = Map::hash(KEY_BYTES, KEY_BYTES, PROCESSES)?;
        let lacks = |event: &str| io::Error::other(format!("this kernel lacks {event}"));
        let send = format(SEND).ok_or_else(|| lacks(SEND))?;
        let fork = format(FORK).ok_or_else(|| lacks(FORK))?;
        let at_send = reply_program::send_code(&send, &recorded, ring.map());
        let at_fork = reply_program::fork_code(&fork, &recorded);
        let at_send = Program::load(&at_send.ok_or_else(|| lacks(SEND))?)?;
        let at_fork = Program::load(&at_fork.ok_or_else(|| lacks(FORK))?)?;
        Ok(Self {
            ring,
            recorded,
            programs: [(send.id, at_send), (fork.id, at_fork)],
        })
    }

    /// Runs them, for these processes and their descendants, until the returned value is dropped.
    pub fn attach(&self, pids: &[i32]) -> io::Result<Vec<Attachment>> {
        for pid in pids {
            self.recorded.insert(pid.unsigned_abs().into())?;
        }
        let programs = self.programs.iter();
        programs
            .map(|(tracepoint, program)| program.attach(*tracepoint))
            .collect()
    }

    /// Returns the records since the last time.
    pub fn drain(&mut self, mut take: impl FnMut(Sent)) {
        self.ring.drain(|record| {
            if let Some(sent) = reply_program::parse(record) {
                take(sent);
            }
        });
    }
}
