//! Reports every open and removal of a file while a burst lasts, from BPF programs at those calls.

use std::fs;
use std::io;
use std::path::Path;

use super::bpf::{Attachment, Map, Program, Ring};
use super::format::Format;
use super::open_program::{self, Entry, KEPT_BYTES, KEY_BYTES, Told};

/// Calls that open or remove a file by its name.
const CALLS: [&str; 5] = ["openat", "openat2", "open", "unlink", "unlinkat"];

/// Buffer for unread records; some two thousand, as each may hold the longest path.
const RING_BYTES: u32 = 8 << 20;

/// Calls that may be under way at once.
const CALLS_UNDER_WAY: u32 = 16_384;

/// Programs that the kernel has accepted, not running yet.
pub struct OpenWatch {
    ring: Ring,
    programs: Vec<(u16, Program)>,
    _kept: Map,
}

impl OpenWatch {
    /// Loads the programs for the calls that this kernel has.
    pub fn load(tracefs: &Path) -> io::Result<Self> {
        allow_locked_memory();
        let ring = Ring::new(RING_BYTES)?;
        let kept = Map::hash(KEY_BYTES, KEPT_BYTES, CALLS_UNDER_WAY)?;
        let mut programs = Vec::new();
        for call in CALLS {
            let format = |event: String| {
                let path = tracefs.join("events/syscalls").join(event).join("format");
                Format::parse(&fs::read_to_string(path).ok()?)
            };
            let (Some(enter), Some(exit)) = (
                format(format!("sys_enter_{call}")),
                format(format!("sys_exit_{call}")),
            ) else {
                continue;
            };
            let (Some(entry), Some(result)) = (Entry::of(&enter), exit.field("ret")) else {
                continue;
            };
            let result = i16::try_from(result.offset).map_err(io::Error::other)?;
            // The exit first: so an entry that is caught always finds it.
            let code = open_program::exit_code(result, &kept, ring.map());
            programs.push((exit.id, Program::load(&code)?));
            programs.push((enter.id, Program::load(&entry.code(&kept))?));
        }
        Ok(Self {
            ring,
            programs,
            _kept: kept,
        })
    }

    /// Runs them, for all threads of the machine, until what is returned is dropped.
    pub fn attach(&self) -> io::Result<Vec<Attachment>> {
        let programs = self.programs.iter();
        programs
            .map(|(tracepoint, program)| program.attach(*tracepoint))
            .collect()
    }

    /// Returns the records since the last time.
    pub fn drain(&mut self, mut take: impl FnMut(Told)) {
        self.ring.drain(|record| {
            if let Some(told) = open_program::parse(record) {
                take(told);
            }
        });
    }
}

/// Before Linux 5.11 maps count as locked memory, which is limited for root too.
pub fn allow_locked_memory() {
    let limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the pointer is to a live structure. Where it is refused, making the maps says why.
    unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit) };
}
