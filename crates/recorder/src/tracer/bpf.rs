//! The minimal BPF support needed here: an assembler for a few instructions, programs at tracepoints, and the reader's
//! side of a ring of records.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use memmap2::{MmapOptions, MmapRaw};
use rustix::param::page_size;
use rustix::process::{Resource, Rlimit, setrlimit};

/// Programs that the kernel has accepted, not running yet, with the ring and the map that they use.
pub struct Watch {
    pub map: Map,
    ring: Mutex<Ring>,
    programs: Vec<(u16, Program)>,
}

impl Watch {
    /// Without programs yet. The ring has a size that is a power of two.
    pub fn new(ring_bytes: u32, map: impl FnOnce() -> io::Result<Map>) -> io::Result<Self> {
        let unlimited = Rlimit {
            current: None,
            maximum: None,
        };
        // Before Linux 5.11 maps count as locked memory, which is limited for root too. Where it is refused, making the
        // maps says why.
        let _ = setrlimit(Resource::Memlock, unlimited);
        Ok(Self {
            ring: Mutex::new(Ring::new(ring_bytes)?),
            map: map()?,
            programs: Vec::new(),
        })
    }

    /// Loads a program for the tracepoint of that number; `write` is given the map and the ring.
    pub fn load(
        &mut self,
        tracepoint: u16,
        write: impl FnOnce(&Map, &Map) -> Assembler,
    ) -> io::Result<()> {
        let ring = self.ring.get_mut().unwrap_or_else(PoisonError::into_inner);
        let code = write(&self.map, &ring.map).code;
        self.programs.push((tracepoint, Program::load(&code)?));
        Ok(())
    }

    /// Runs them, for all threads of the machine, until what is returned is dropped.
    pub fn attach(&self) -> io::Result<Vec<Attachment>> {
        let programs = self.programs.iter();
        programs
            .map(|(tracepoint, program)| program.attach(*tracepoint))
            .collect()
    }

    /// Returns the records since the last time.
    pub fn drain(&self, take: impl FnMut(&[u8])) {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        ring.drain(take);
    }
}

/// A register: `R0` has results, `R1` to `R4` arguments, `R6` to `R9` are kept across calls, and `R10` points at the end
/// of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R6 = 6,
    R7,
    R8,
    R9,
    R10,
}

/// Functions of the kernel, by its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Helper {
    /// `(map, key) -> value or 0`
    MapLookup = 1,
    /// `(map, key, value, flags)`
    MapUpdate = 2,
    /// `(map, key)`
    MapDelete = 3,
    /// `() -> monotonic time`
    Time = 5,
    /// `() -> process << 32 | thread`
    CurrentThread = 14,
    /// `(to, size, from) -> 0, or an error`
    ReadUser = 112,
    /// `(to, size, from) -> length with its zero, or an error`
    ReadUserText = 114,
    /// `(ring, size, flags) -> room or 0`
    RingReserve = 131,
    /// `(room, flags)`
    RingSubmit = 132,
}

/// A jump whose target is not known yet.
#[must_use]
pub struct Jump(usize);

/// A program that grows by one instruction of the kernel's virtual machine, of eight bytes, at a time.
#[derive(Default)]
pub struct Assembler {
    code: Vec<u64>,
}

impl Assembler {
    fn push(&mut self, opcode: u8, to: u8, from: u8, offset: i16, immediate: i32) {
        let word = u64::from(opcode)
            | u64::from(from << 4 | to) << 8
            | u64::from(offset.cast_unsigned()) << 16
            | u64::from(immediate.cast_unsigned()) << 32;
        self.code.push(word);
    }

    /// `to = from`
    pub fn copy(&mut self, to: Register, from: Register) {
        self.push(0xbf, to as u8, from as u8, 0, 0);
    }

    /// `to = number`, sign extended.
    pub fn set(&mut self, to: Register, number: i32) {
        self.push(0xb7, to as u8, 0, 0, number);
    }

    /// `to += number`
    pub fn add(&mut self, to: Register, number: i32) {
        self.push(0x07, to as u8, 0, 0, number);
    }

    /// `to += from`
    pub fn add_register(&mut self, to: Register, from: Register) {
        self.push(0x0f, to as u8, from as u8, 0, 0);
    }

    /// `to -= from`
    pub fn subtract_register(&mut self, to: Register, from: Register) {
        self.push(0x1f, to as u8, from as u8, 0, 0);
    }

    /// `to >>= bits`, without a sign.
    pub fn shift_right(&mut self, to: Register, bits: i32) {
        self.push(0x77, to as u8, 0, 0, bits);
    }

    /// `to = from[offset]`, four bytes without a sign.
    pub fn load_half(&mut self, to: Register, from: Register, offset: i16) {
        self.push(0x61, to as u8, from as u8, offset, 0);
    }

    /// `to = from[offset]`, eight bytes.
    pub fn load(&mut self, to: Register, from: Register, offset: i16) {
        self.push(0x79, to as u8, from as u8, offset, 0);
    }

    /// `to[offset] = from`, eight bytes.
    pub fn store(&mut self, to: Register, offset: i16, from: Register) {
        self.push(0x7b, to as u8, from as u8, offset, 0);
    }

    pub fn set_map(&mut self, to: Register, map: &Map) {
        const PSEUDO_MAP_FD: u8 = 1;
        self.push(0x18, to as u8, PSEUDO_MAP_FD, 0, map.0.as_raw_fd());
        self.push(0, 0, 0, 0, 0);
    }

    /// `to = stack + offset`
    pub fn set_stack(&mut self, to: Register, offset: i32) {
        self.copy(to, Register::R10);
        self.add(to, offset);
    }

    /// Calls a function of a map and of the key on the stack at -8.
    pub fn call_with_key(&mut self, function: Helper, map: &Map) {
        self.set_map(Register::R1, map);
        self.set_stack(Register::R2, -8);
        self.call(function);
    }

    /// `R6 = room in a ring`; the jump is for a ring that is full.
    pub fn reserve(&mut self, ring: &Map, bytes: i32) -> Jump {
        self.set_map(Register::R1, ring);
        self.set(Register::R2, bytes);
        self.set(Register::R3, 0);
        self.call(Helper::RingReserve);
        let full = self.if_zero(Register::R0);
        self.copy(Register::R6, Register::R0);
        full
    }

    /// Submits the room at `R6`.
    pub fn submit(&mut self, flags: i32) {
        self.copy(Register::R1, Register::R6);
        self.set(Register::R2, flags);
        self.call(Helper::RingSubmit);
    }

    /// `R0 = function(R1, …)`; `R1` to `R5` are lost.
    pub fn call(&mut self, function: Helper) {
        self.push(0x85, 0, 0, 0, function as i32);
    }

    pub fn if_zero(&mut self, register: Register) -> Jump {
        self.push(0x15, register as u8, 0, 0, 0);
        Jump(self.code.len() - 1)
    }

    pub fn if_negative(&mut self, register: Register) -> Jump {
        self.push(0xc5, register as u8, 0, 0, 0);
        Jump(self.code.len() - 1)
    }

    /// Jumps if a register, without a sign, is below a number.
    pub fn if_below(&mut self, register: Register, number: i32) -> Jump {
        self.push(0xa5, register as u8, 0, 0, number);
        Jump(self.code.len() - 1)
    }

    /// Makes a jump lead to the next instruction.
    pub fn land(&mut self, jump: Jump) {
        let distance = self.code.len() - jump.0 - 1;
        self.code[jump.0] |= (distance as u64 & 0xffff) << 16;
    }

    /// Ends with 0.
    pub fn exit(&mut self) {
        self.set(Register::R0, 0);
        self.push(0x95, 0, 0, 0, 0);
    }
}

pub struct Map(OwnedFd);

/// A program that the kernel has accepted.
struct Program(OwnedFd);

/// A program at a tracepoint; it runs, for every thread of the machine, until this is dropped.
pub struct Attachment {
    _event: OwnedFd,
}

const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;

const LRU_HASH: u32 = 9;
const RING: u32 = 27;

const PROG_TYPE_TRACEPOINT: u32 = 5;

/// The kernel gives some helpers only to programs under its licence.
const LICENSE: &[u8] = b"Dual BSD/GPL\0";

#[repr(C)]
#[derive(Default)]
struct ProgramAttributes {
    program_type: u32,
    instructions: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

impl Map {
    /// Entries by key; the least recently used make way for new ones.
    pub fn hash(key_bytes: u32, value_bytes: u32, entries: u32) -> io::Result<Self> {
        Self::create(LRU_HASH, key_bytes, value_bytes, entries)
    }

    fn create(map_type: u32, key_bytes: u32, value_bytes: u32, entries: u32) -> io::Result<Self> {
        let no_flags = 0;
        let attributes = [map_type, key_bytes, value_bytes, entries, no_flags];
        owned(bpf(MAP_CREATE, &attributes)).map(Self)
    }

    /// Puts in a key of eight bytes, with itself as its value.
    pub fn insert(&self, key: u64) -> io::Result<()> {
        // The descriptor has four bytes and four after it: the processors that we know by their system calls store the
        // lowest byte first.
        let map = u64::from(self.0.as_raw_fd().cast_unsigned());
        let (place, no_flags) = ((&raw const key) as u64, 0);
        let attributes = [map, place, place, no_flags];
        match bpf(MAP_UPDATE, &attributes) {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

impl Program {
    fn load(code: &[u64]) -> io::Result<Self> {
        let attributes = ProgramAttributes {
            program_type: PROG_TYPE_TRACEPOINT,
            instructions: u32::try_from(code.len()).map_err(io::Error::other)?,
            code: code.as_ptr() as u64,
            license: LICENSE.as_ptr() as u64,
            ..ProgramAttributes::default()
        };
        owned(bpf(PROG_LOAD, &attributes)).map(Self)
    }

    fn attach(&self, tracepoint: u16) -> io::Result<Attachment> {
        const PERF_EVENT_IOC_SET_BPF: libc::c_ulong = 0x4004_2408;
        let event = open_event(tracepoint)?;
        // SAFETY: both descriptors are open, and the request takes a descriptor.
        let set = unsafe {
            libc::ioctl(
                event.as_raw_fd(),
                PERF_EVENT_IOC_SET_BPF as _,
                self.0.as_raw_fd(),
            )
        };
        match set {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(Attachment { _event: event }),
        }
    }
}

/// The beginning of `perf_event_attr`, as its first version had it.
#[repr(C)]
#[derive(Default)]
struct EventAttributes {
    event_type: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

fn open_event(tracepoint: u16) -> io::Result<OwnedFd> {
    const TYPE_TRACEPOINT: u32 = 2;
    const CLOSE_ON_EXEC: libc::c_ulong = 8;
    let attributes = EventAttributes {
        event_type: TYPE_TRACEPOINT,
        size: size_of::<EventAttributes>() as u32,
        config: tracepoint.into(),
        sample_period: 1,
        ..EventAttributes::default()
    };
    let (any_thread, core, no_group) = (-1, 0, -1);
    // SAFETY: the attributes are live for the call, and say their own size.
    owned(unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            any_thread,
            core,
            no_group,
            CLOSE_ON_EXEC,
        )
    })
}

fn bpf<A>(command: libc::c_int, attributes: &A) -> libc::c_long {
    let attributes = std::ptr::from_ref(attributes);
    // SAFETY: the attributes are live for the call, and as long as the size says; what they point at is borrowed
    // by the callers above.
    unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size_of::<A>()) }
}

fn owned(descriptor: libc::c_long) -> io::Result<OwnedFd> {
    match i32::try_from(descriptor) {
        // SAFETY: the kernel has just given it to us.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A ring, mapped: a page with the reader's position, one with the writers', then the data twice, so that no
/// record has to be read in two parts.
struct Ring {
    consumer: MmapRaw,
    producer: MmapRaw,
    bytes: usize,
    // The kernel writes as long as the map lives.
    map: Map,
}

const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
const HEADER_BYTES: usize = 8;

impl Ring {
    fn new(bytes: u32) -> io::Result<Self> {
        let map = Map::create(RING, 0, 0, bytes)?;
        let (bytes, page) = (bytes as usize, page_size());
        let mut producer = MmapOptions::new();
        producer.offset(page as u64).len(page + 2 * bytes);
        Ok(Self {
            consumer: MmapOptions::new().len(page).map_raw(&map.0)?,
            producer: producer.map_raw_read_only(&map.0)?,
            bytes,
            map,
        })
    }

    /// Passes every complete record to `take`, and frees its space.
    fn drain(&mut self, mut take: impl FnMut(&[u8])) {
        let consumer = self.consumer.as_ptr().cast::<AtomicU64>();
        let producer = self.producer.as_ptr().cast::<AtomicU64>();
        // SAFETY: both mappings live as long as `self`, begin at a page, and the kernel uses these words atomically.
        let (consumer, producer) = unsafe { (&*consumer, &*producer) };
        let mut at = consumer.load(Ordering::Relaxed);
        while at < producer.load(Ordering::Acquire) {
            // A ring's size divides 2^64: the position wraps as the counter does.
            let offset = page_size() + (at as usize & (self.bytes - 1));
            // SAFETY: within the mapping, which has the data twice, and a multiple of eight bytes.
            let record = unsafe { self.producer.as_ptr().add(offset) };
            // SAFETY: the kernel uses this word atomically.
            let head = unsafe { &*record.cast::<AtomicU32>() }.load(Ordering::Acquire);
            if head & BUSY != 0 {
                break;
            }
            let length = (head & !DISCARDED) as usize;
            if head & DISCARDED == 0 {
                assert!(length <= self.bytes);
                // SAFETY: within the mapping; nobody writes a record that is complete before its space is freed.
                take(unsafe { std::slice::from_raw_parts(record.add(HEADER_BYTES), length) });
            }
            at += (HEADER_BYTES + length).next_multiple_of(8) as u64;
            consumer.store(at, Ordering::Release);
        }
    }
}
