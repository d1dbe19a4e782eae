//! The programs that copy the last bytes that a session sends, at the entry of the call, of recorded
//! processes only.

use super::bpf::{Assembler, Helper, Jump, Map, Register::*};
use super::format::Format;
use crate::protocol::TAIL_BYTES;

/// Length of a process's number as a key.
pub const KEY_BYTES: u32 = 8;

/// Where in a record the last bytes stand, after time, thread and length.
const TAIL_OFFSET: i32 = 24;
/// After them, whether they could be read.
const RESULT_OFFSET: i32 = TAIL_OFFSET + TAIL_BYTES as i32;
const RECORD_BYTES: i32 = RESULT_OFFSET + 8;
/// No reader waits for a record: the ring is emptied at regular intervals.
const WAKE_NOBODY: i32 = 1;

/// Data sent by one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When, monotonic clock.
    pub time_ns: u64,
    /// Thread.
    pub tid: i32,
    /// Number of bytes.
    pub length_bytes: u64,
    tail: [u8; TAIL_BYTES],
}

impl Sent {
    /// The last of them.
    pub fn tail(&self) -> &[u8] {
        let seen = usize::try_from(self.length_bytes).map_or(TAIL_BYTES, |all| all.min(TAIL_BYTES));
        &self.tail[..seen]
    }
}

/// The program of the entry of `send`, by the format of its record.
pub fn send_code(format: &Format, recorded: &Map, ring: &Map) -> Option<Vec<u64>> {
    let (bytes, length) = (offset(format, "buff")?, offset(format, "len")?);
    let mut code = Assembler::default();
    code.load(R8, R1, length);
    code.load(R9, R1, bytes);
    code.call(Helper::CurrentThread);
    code.copy(R7, R0);
    let other = unless_recorded(&mut code, recorded);
    code.set_map(R1, ring.descriptor());
    code.set(R2, RECORD_BYTES);
    code.set(R3, 0);
    code.call(Helper::RingReserve);
    let full = code.if_zero(R0);
    code.copy(R6, R0);
    code.store(R6, 8, R7);
    code.store(R6, 16, R8);
    code.call(Helper::Time);
    code.store(R6, 0, R0);
    code.copy(R2, R8);
    let few = code.if_below(R2, TAIL_BYTES as i32);
    code.set(R2, TAIL_BYTES as i32);
    code.land(few);
    code.copy(R3, R9);
    code.add_register(R3, R8);
    code.subtract_register(R3, R2);
    code.copy(R1, R6);
    code.add(R1, TAIL_OFFSET);
    code.call(Helper::ReadUser);
    code.store(R6, RESULT_OFFSET as i16, R0);
    code.copy(R1, R6);
    code.set(R2, WAKE_NOBODY);
    code.call(Helper::RingSubmit);
    code.land(full);
    code.land(other);
    code.exit();
    Some(code.code().to_vec())
}

/// The program where a process or thread begins: children of recorded processes are recorded.
pub fn fork_code(format: &Format, recorded: &Map) -> Option<Vec<u64>> {
    let child = offset(format, "pid")?;
    let mut code = Assembler::default();
    code.load_half(R8, R1, child);
    code.call(Helper::CurrentThread);
    let other = unless_recorded(&mut code, recorded);
    code.store(R10, -8, R8);
    code.set_map(R1, recorded.descriptor());
    code.set_stack(R2, -8);
    code.set_stack(R3, -8);
    code.set(R4, 0);
    code.call(Helper::MapUpdate);
    code.land(other);
    code.exit();
    Some(code.code().to_vec())
}

fn offset(format: &Format, field: &str) -> Option<i16> {
    i16::try_from(format.field(field)?.offset).ok()
}

/// Jumps unless the process of the thread in `R0` is recorded.
fn unless_recorded(code: &mut Assembler, recorded: &Map) -> Jump {
    code.shift_right(R0, 32);
    code.store(R10, -8, R0);
    code.set_map(R1, recorded.descriptor());
    code.set_stack(R2, -8);
    code.call(Helper::MapLookup);
    code.if_zero(R0)
}

/// Reads a record; none if the bytes could not be read.
pub fn parse(record: &[u8]) -> Option<Sent> {
    let bytes = |at: usize| -> Option<[u8; 8]> { record.get(at..at + 8)?.try_into().ok() };
    let read = u64::from_ne_bytes(bytes(RESULT_OFFSET as usize)?) == 0;
    read.then_some(Sent {
        time_ns: u64::from_ne_bytes(bytes(0)?),
        tid: u64::from_ne_bytes(bytes(8)?) as i32,
        length_bytes: u64::from_ne_bytes(bytes(16)?),
        tail: bytes(TAIL_OFFSET as usize)?,
    })
}
