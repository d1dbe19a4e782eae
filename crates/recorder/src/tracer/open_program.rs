//! The two programs that catch a path: the entry of a call keeps the path's address, the exit copies the
//! path.
//!
//! The copy is at the exit, because by then the kernel has read the path itself, so that its page is in
//! memory.

use super::bpf::{Assembler, Helper, Map, Register::*};
use super::format::Format;

/// Where in the entry's record the path's address and the directory's number lie.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    path: i16,
    directory: Option<i16>,
}

/// Length of the record that the entry keeps for the exit: address and directory.
pub const KEPT_BYTES: u32 = 16;

/// Length of the key: process and thread.
pub const KEY_BYTES: u32 = 8;

/// Longest path, with its zero.
const PATH_BYTES: i32 = 4096;

const PATH_OFFSET: i32 = 40;

/// The exit's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// When, monotonic clock.
    pub time_ns: u64,
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// The number that the file got; of a call that opens none, its result.
    pub result: i64,
    /// Number of the directory that a relative path begins at.
    pub directory: i32,
    /// The path as the caller wrote it.
    pub path: String,
}

impl Entry {
    /// From the format of `sys_enter_NAME`; none if it has no path.
    pub fn of(format: &Format) -> Option<Self> {
        let path = ["filename", "pathname"]
            .iter()
            .find_map(|name| format.field(name))?;
        let directory = format.field("dfd");
        Some(Self {
            path: i16::try_from(path.offset).ok()?,
            directory: directory.and_then(|field| i16::try_from(field.offset).ok()),
        })
    }

    /// The program of the entry.
    pub fn code(self, kept: &Map) -> Vec<u64> {
        let mut code = Assembler::default();
        code.copy(R6, R1);
        code.call(Helper::CurrentThread);
        code.store(R10, -8, R0);
        code.load(R1, R6, self.path);
        code.store(R10, -24, R1);
        match self.directory {
            Some(offset) => code.load(R1, R6, offset),
            None => code.set(R1, libc::AT_FDCWD),
        }
        code.store(R10, -16, R1);
        code.set_map(R1, kept.descriptor());
        code.set_stack(R2, -8);
        code.set_stack(R3, -24);
        code.set(R4, 0);
        code.call(Helper::MapUpdate);
        code.exit();
        code.code().to_vec()
    }
}

/// The program of the exit, whose record has its result at `result`.
pub fn exit_code(result: i16, kept: &Map, ring: &Map) -> Vec<u64> {
    let mut code = Assembler::default();
    code.load(R7, R1, result);
    code.call(Helper::CurrentThread);
    code.copy(R8, R0);
    code.store(R10, -8, R0);
    code.set_map(R1, kept.descriptor());
    code.set_stack(R2, -8);
    code.call(Helper::MapLookup);
    let unknown = code.if_zero(R0);
    code.load(R9, R0, 0);
    code.load(R1, R0, 8);
    code.store(R10, -16, R1);
    let failed = code.if_negative(R7);
    code.set_map(R1, ring.descriptor());
    code.set(R2, PATH_OFFSET + PATH_BYTES);
    code.set(R3, 0);
    code.call(Helper::RingReserve);
    let full = code.if_zero(R0);
    code.copy(R6, R0);
    code.store(R6, 8, R8);
    code.store(R6, 16, R7);
    code.load(R1, R10, -16);
    code.store(R6, 24, R1);
    code.call(Helper::Time);
    code.store(R6, 0, R0);
    code.copy(R1, R6);
    code.add(R1, PATH_OFFSET);
    code.set(R2, PATH_BYTES);
    code.copy(R3, R9);
    code.call(Helper::ReadUserText);
    code.store(R6, 32, R0);
    code.copy(R1, R6);
    code.set(R2, 0);
    code.call(Helper::RingSubmit);
    code.land(failed);
    code.land(full);
    code.set_map(R1, kept.descriptor());
    code.set_stack(R2, -8);
    code.call(Helper::MapDelete);
    code.land(unknown);
    code.exit();
    code.code().to_vec()
}

/// Reads a record of the exit; none if the path could not be copied.
pub fn parse(record: &[u8]) -> Option<Told> {
    let word = |at: usize| Some(u64::from_ne_bytes(record.get(at..at + 8)?.try_into().ok()?));
    let thread = word(8)?;
    // With its zero; an error is a number below zero, which no length is.
    let length = usize::try_from(word(32)?).ok()?.checked_sub(1)?;
    let start = PATH_OFFSET as usize;
    let path = record.get(start..start.checked_add(length)?)?;
    Some(Told {
        time_ns: word(0)?,
        pid: (thread >> 32) as i32,
        tid: thread as i32,
        result: word(16)?.cast_signed(),
        directory: word(24)? as i32,
        path: String::from_utf8_lossy(path).into_owned(),
    })
}
