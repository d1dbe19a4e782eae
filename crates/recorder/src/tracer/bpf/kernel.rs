//! The system calls behind maps, programs, and what runs a program at a tracepoint.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A map, by its descriptor.
pub struct Map(OwnedFd);

/// A program that the kernel has accepted.
pub struct Program(OwnedFd);

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
struct MapAttributes {
    map_type: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

#[repr(C)]
struct ElementAttributes {
    map: u32,
    _unused: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
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

    /// A ring of records, of a size that is a power of two.
    pub fn ring(bytes: u32) -> io::Result<Self> {
        Self::create(RING, 0, 0, bytes)
    }

    fn create(map_type: u32, key_bytes: u32, value_bytes: u32, entries: u32) -> io::Result<Self> {
        let attributes = MapAttributes {
            map_type,
            key_bytes,
            value_bytes,
            entries,
            flags: 0,
        };
        bpf(MAP_CREATE, &attributes).map(Self)
    }

    /// Puts in a key of eight bytes, with itself as its value.
    pub fn insert(&self, key: u64) -> io::Result<()> {
        let attributes = ElementAttributes {
            map: self.0.as_raw_fd().cast_unsigned(),
            _unused: 0,
            key: (&raw const key) as u64,
            value: (&raw const key) as u64,
            flags: 0,
        };
        match command(MAP_UPDATE, &attributes) {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// Its descriptor, as programs name it.
    pub fn descriptor(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// Its descriptor, to be mapped.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Program {
    /// Loads one that runs at tracepoints.
    pub fn load(code: &[u64]) -> io::Result<Self> {
        let attributes = ProgramAttributes {
            program_type: PROG_TYPE_TRACEPOINT,
            instructions: u32::try_from(code.len()).map_err(io::Error::other)?,
            code: code.as_ptr() as u64,
            license: LICENSE.as_ptr() as u64,
            log_level: 0,
            log_bytes: 0,
            log: 0,
            kernel_version: 0,
            flags: 0,
        };
        bpf(PROG_LOAD, &attributes).map(Self)
    }

    /// Runs it at the tracepoint of that number.
    pub fn attach(&self, tracepoint: u16) -> io::Result<Attachment> {
        let event = open_event(tracepoint)?;
        // SAFETY: both descriptors are open, and the request takes a descriptor.
        let set = unsafe {
            libc::ioctl(
                event.as_raw_fd(),
                PERF_EVENT_IOC_SET_BPF,
                self.0.as_raw_fd(),
            )
        };
        match set {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(Attachment { _event: event }),
        }
    }
}

const PERF_EVENT_IOC_SET_BPF: libc::c_ulong = 0x4004_2408;

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
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            any_thread,
            core,
            no_group,
            CLOSE_ON_EXEC,
        )
    };
    owned(descriptor)
}

fn bpf<A>(number: libc::c_int, attributes: &A) -> io::Result<OwnedFd> {
    owned(command(number, attributes))
}

fn command<A>(number: libc::c_int, attributes: &A) -> libc::c_long {
    // SAFETY: the attributes are live for the call, and as long as the size says; what they point at is borrowed
    // by the callers above.
    unsafe {
        libc::syscall(
            libc::SYS_bpf,
            number,
            std::ptr::from_ref(attributes),
            size_of::<A>(),
        )
    }
}

fn owned(descriptor: libc::c_long) -> io::Result<OwnedFd> {
    match i32::try_from(descriptor) {
        Ok(descriptor) if descriptor >= 0 => {
            // SAFETY: the kernel has just given it to us.
            Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
        }
        _ => Err(io::Error::last_os_error()),
    }
}
