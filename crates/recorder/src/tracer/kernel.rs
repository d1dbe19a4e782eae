//! The programs in the kernel, which `make bpf` compiles from `bpf/tracer.bpf.c`, and the memory that they share with us.

use std::error::Error;
use std::fs;
use std::io;
use std::iter;
use std::os::fd::AsFd;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use aya::maps::{Map, MapData, RingBuf};
use aya::programs::{BtfTracePoint, ProgramError};
use aya::{Btf, Ebpf, EbpfLoader, include_bytes_aligned};
use memmap2::{MmapOptions, MmapRaw};
use rustix::process::geteuid;
use rustix::system::sysinfo;
use rustix::thread::{CapabilitySet, capabilities};

use super::kernel_record::KernelRecord;
use crate::UserError;
use crate::timeline::syscalls;
use crate::trace_event::{BlockRequest, TraceEventKind};

static OBJECT: &[u8] = include_bytes_aligned!("../../bpf/tracer.bpf.o");

/// Types of the kernel that runs.
const BTF: &str = "/sys/kernel/btf/vmlinux";

const OTHER_KERNEL: &str = "record on Linux 5.15 or later with BTF, as distributions build it";
const CAPABILITIES: &str = "in a container, give it CAP_BPF and CAP_PERFMON; elsewhere, see whether the kernel is locked \
                            down for confidentiality";

/// Programs with the name of the tracepoint where they run.
const PROGRAMS: [&str; 17] = [
    "irq_handler_entry",
    "irq_handler_exit",
    "softirq_entry",
    "softirq_exit",
    "hrtimer_expire_entry",
    "hrtimer_expire_exit",
    "task_newtask",
    "task_rename",
    "sched_process_exit",
    "sched_process_free",
    "sched_waking",
    "sched_wakeup_new",
    "sched_switch",
    "sys_enter",
    "sys_exit",
    "block_rq_issue",
    COMPLETION,
];

const COMPLETION: &str = "block_rq_complete";

/// Programs and their tracepoints, of which the first that this kernel takes runs; a kernel may have none.
const URING_PROGRAMS: [&[(&str, &str)]; 2] = [
    &[
        ("io_uring_submit", "io_uring_submit_req"),
        // Its name before Linux 6.3; the request is its first argument since 6.0.
        ("io_uring_submit", "io_uring_submit_sqe"),
    ],
    &[
        ("io_uring_complete", "io_uring_complete"),
        ("io_uring_result", "io_uring_complete"),
    ],
];

/// Reason why programs cannot be loaded here, with its fix.
pub fn why_tracing_impossible() -> Option<(&'static str, &'static str)> {
    if !geteuid().is_root() {
        return Some((
            "only root may load programs into the kernel",
            "run it as root",
        ));
    }
    let needed = CapabilitySet::BPF | CapabilitySet::PERFMON;
    let allowed = capabilities(None).is_ok_and(|own| {
        let own = own.effective;
        own.contains(CapabilitySet::SYS_ADMIN) || own.contains(needed)
    });
    if !allowed {
        return Some(("root may not load programs into the kernel", CAPABILITIES));
    }
    let has_types = Path::new(BTF).exists();
    (!has_types).then_some(("this kernel has no BTF", OTHER_KERNEL))
}

/// # Errors
/// If programs cannot be loaded here.
pub(crate) fn require_tracing_possible() -> Result<(), UserError> {
    why_tracing_impossible().map_or(Ok(()), |(reason, fix)| {
        Err(UserError::new(format!("cannot record here: {reason}"), fix))
    })
}

/// What the kernel refused, on one line with its causes.
fn kernel_refusal(error: impl Into<Box<dyn Error>>) -> UserError {
    program_refusal("", error)
}

/// The same, of a program.
fn program_refusal(program: &str, error: impl Into<Box<dyn Error>>) -> UserError {
    let error = error.into();
    let first: &(dyn Error + 'static) = &*error;
    let causes = iter::successors(Some(first), |error| (*error).source());
    let mut reasons = vec![program.to_owned()];
    reasons.extend(causes.map(with_verifier_line));
    reasons.dedup();
    reasons.retain(|reason| !reason.is_empty());
    let reason = reasons.join(": ");
    let fix = match reason.contains("not permitted") {
        true => CAPABILITIES,
        false => OTHER_KERNEL,
    };
    UserError::new(format!("cannot record here: {reason}"), fix)
}

/// Programs that the kernel has accepted.
pub struct LoadedPrograms {
    ebpf: Ebpf,
    names: Vec<&'static str>,
    threads: MmapRaw,
}

/// Records of the programs, which any thread may take.
pub struct RecordRings {
    records: MmapRaw,
    positions: MmapRaw,
    /// Also the lock of whoever takes records.
    opens: Mutex<RingBuf<MapData>>,
    pub cores: u16,
    shift: u32,
}

/// Threads whose calls, scheduling and forks are recorded.
const TARGET: u8 = 1;
/// Threads whose scheduling is recorded.
const CLIENT: u8 = 2;
/// The kernel gives no number above this (`PID_MAX_LIMIT`).
const THREADS: usize = 1 << 22;

/// Records of all cores since the programs were loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    pub taken: u64,
    /// Those that found the ring full.
    pub lost: u64,
}

impl std::ops::Sub for RecordCounts {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            taken: self.taken - earlier.taken,
            lost: self.lost - earlier.lost,
        }
    }
}

impl LoadedPrograms {
    /// Loads all, with a ring of at most this size for each core.
    pub fn load(buffer_bytes: u64) -> Result<(Self, RecordRings), UserError> {
        Self::load_some(buffer_bytes, &PROGRAMS, &URING_PROGRAMS)
    }

    fn load_some(
        buffer_bytes: u64,
        names: &[&'static str],
        of_uring: &[&[(&'static str, &str)]],
    ) -> Result<(Self, RecordRings), UserError> {
        require_tracing_possible()?;
        let btf = Btf::from_sys_fs().map_err(kernel_refusal)?;
        let cores = possible_cores();
        let shift = ring_shift(buffer_bytes, cores);
        let mut loader = EbpfLoader::new();
        let [first, second, third, fourth] = ARGUMENT_OFFSETS;
        let how = call_flags_table();
        loader
            .btf(Some(&btf))
            .override_global("HOW", &how, true)
            .override_global("RING_SHIFT", &shift, true)
            .override_global("ARGUMENT_0", &first, true)
            .override_global("ARGUMENT_1", &second, true)
            .override_global("ARGUMENT_2", &third, true)
            .override_global("ARGUMENT_3", &fourth, true)
            .override_global("NUMBER", &NUMBER_OFFSET, true)
            .map_max_entries("records", u32::from(cores) << shift)
            .map_max_entries("positions", cores.into());
        let mut ebpf = loader.load(OBJECT).map_err(kernel_refusal)?;
        let mut loaded = Vec::new();
        for &name in names {
            load_tracing_program(&mut ebpf, name, name, &btf)
                .map_err(|error| program_refusal(name, error))?;
            loaded.push(name);
        }
        for choice in of_uring {
            let mut choice = choice.iter();
            let taken = choice
                .find(|(name, point)| load_tracing_program(&mut ebpf, name, point, &btf).is_ok());
            loaded.extend(taken.map(|(name, _)| *name));
        }
        let map =
            |name: &str, bytes: usize| map_bpf_array(&ebpf, name, bytes).map_err(kernel_refusal);
        let records = map(
            "records",
            size_of::<KernelRecord>() * (usize::from(cores) << shift),
        )?;
        let positions = map("positions", size_of::<RingPosition>() * usize::from(cores))?;
        let threads = map("threads", THREADS)?;
        let opens = ebpf
            .take_map("opens")
            .ok_or_else(|| kernel_refusal("no ring"))?;
        let rings = RecordRings {
            records,
            positions,
            opens: Mutex::new(RingBuf::try_from(opens).map_err(kernel_refusal)?),
            cores,
            shift,
        };
        let programs = Self {
            ebpf,
            names: loaded,
            threads,
        };
        Ok((programs, rings))
    }

    /// Records these threads from the next attachment on, and no others; of clients, the scheduling alone. No program may
    /// be attached.
    pub fn follow(&self, tids: &[i32], clients: &[i32]) {
        // SAFETY: the mapping has this length, and no program runs.
        unsafe { self.threads.as_mut_ptr().write_bytes(0, THREADS) };
        self.add(tids, clients);
    }

    /// Records these threads too.
    pub fn add(&self, tids: &[i32], clients: &[i32]) {
        for (tids, flag) in [(clients, CLIENT), (tids, TARGET)] {
            let known = tids.iter().filter_map(|&tid| usize::try_from(tid).ok());
            for tid in known.filter(|&tid| tid < THREADS) {
                // SAFETY: within the mapping; the programs read and write single bytes of it.
                unsafe { self.threads.as_mut_ptr().add(tid).write_volatile(flag) };
            }
        }
    }

    /// Runs the programs, for all threads of the machine, until the guard is dropped.
    pub fn attach(&mut self) -> Result<AttachedPrograms, UserError> {
        let mut links = Vec::with_capacity(self.names.len());
        for name in &self.names {
            let program = tracing_program(&mut self.ebpf, name).map_err(kernel_refusal)?;
            let attached = program.attach().and_then(|link| program.take_link(link));
            links.push(attached.map_err(|error| program_refusal(name, error))?);
        }
        Ok(AttachedPrograms { _links: links })
    }
}

/// Programs that run; dropping it detaches them, and so does the end of this process.
pub struct AttachedPrograms {
    _links: Vec<aya::programs::tp_btf::BtfTracePointLink>,
}

fn tracing_program<'a>(
    ebpf: &'a mut Ebpf,
    name: &str,
) -> Result<&'a mut BtfTracePoint, ProgramError> {
    let program = ebpf.program_mut(name).ok_or(ProgramError::NotLoaded)?;
    program.try_into()
}

fn load_tracing_program(
    ebpf: &mut Ebpf,
    name: &str,
    tracepoint: &str,
    btf: &Btf,
) -> Result<(), ProgramError> {
    tracing_program(ebpf, name)?.load(tracepoint, btf)
}

/// With the last line of the verifier, if it refused a program.
fn with_verifier_line(error: &(dyn Error + 'static)) -> String {
    match error.downcast_ref() {
        Some(ProgramError::LoadError {
            io_error,
            verifier_log,
        }) => {
            let log = verifier_log.to_string();
            let last = log
                .lines()
                .rfind(|line| line.contains("R") && !line.contains(':'));
            format!("{io_error} {}", last.unwrap_or_default())
        }
        _ => error.to_string(),
    }
}

fn map_bpf_array(ebpf: &Ebpf, name: &str, bytes: usize) -> io::Result<MmapRaw> {
    let Some(Map::Array(map)) = ebpf.map(name) else {
        return Err(io::Error::other(format!("no map {name}")));
    };
    MmapOptions::new().len(bytes).map_raw(&map.fd().as_fd())
}

/// Number of cores that there can be: one more than the highest number.
fn possible_cores() -> u16 {
    let list = fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let highest = list.trim().rsplit([',', '-']).next();
    highest
        .and_then(|number| number.parse().ok())
        .map_or(1, |highest: u16| highest + 1)
}

/// Binary logarithm of the records in each core's ring: of this size, but of a sixteenth of the memory altogether.
fn ring_shift(buffer_bytes: u64, cores: u16) -> u32 {
    let memory = sysinfo();
    let memory_bytes = memory.totalram as u64 * u64::from(memory.mem_unit);
    let room = buffer_bytes.min(memory_bytes / 16 / u64::from(cores));
    (room / size_of::<KernelRecord>() as u64)
        .max(1 << LEAST_SHIFT)
        .ilog2()
}

const LEAST_SHIFT: u32 = 12;

/// Where one core writes next, and where we read next, as the programs have it.
#[repr(C)]
struct RingPosition {
    head: AtomicU64,
    tail: AtomicU64,
    lost: AtomicU64,
    interrupts: u8,
    unused: [u8; 39],
}

impl RecordRings {
    fn position(&self, core: u16) -> &RingPosition {
        assert!(core < self.cores);
        // SAFETY: within the mapping, which begins at a page and lives as long as `self`.
        unsafe {
            &*self
                .positions
                .as_ptr()
                .cast::<RingPosition>()
                .add(core.into())
        }
    }

    pub fn counts(&self) -> RecordCounts {
        let positions = (0..self.cores).map(|core| self.position(core));
        positions.fold(RecordCounts::default(), |sum, position| RecordCounts {
            taken: sum.taken + position.head.load(Ordering::Relaxed),
            lost: sum.lost + position.lost.load(Ordering::Relaxed),
        })
    }

    /// Passes the complete records of all cores to `take`, and frees their space; records of a core are in order but for
    /// those of interrupts. Gives `take_open` the records of opens.
    pub fn drain(&self, mut take: impl FnMut(u16, KernelRecord), mut take_open: impl FnMut(&[u8])) {
        let mut opens = self.opens.lock().unwrap_or_else(PoisonError::into_inner);
        for core in 0..self.cores {
            let position = self.position(core);
            let head = position.head.load(Ordering::Acquire);
            let mut at = position.tail.load(Ordering::Relaxed);
            while at < head
                && let Some(record) = self.complete(core, at)
            {
                take(core, record);
                at += 1;
            }
            position.tail.store(at, Ordering::Release);
        }
        while let Some(open) = opens.next() {
            take_open(&open);
        }
    }

    /// The record at a position, if it is complete.
    fn complete(&self, core: u16, at: u64) -> Option<KernelRecord> {
        let index = usize::from(core) << self.shift | (at as usize & ((1 << self.shift) - 1));
        assert!((index + 1) * size_of::<KernelRecord>() <= self.records.len());
        // SAFETY: within the mapping, which begins at a page; `KernelRecord` takes any bytes.
        let record = unsafe { self.records.as_ptr().cast::<KernelRecord>().add(index) };
        // SAFETY: the programs write this word last, atomically.
        let sequence = unsafe { AtomicU32::from_ptr((&raw const (*record).sequence).cast_mut()) };
        let is_complete = sequence.load(Ordering::Acquire) == (at as u32).wrapping_add(1);
        // SAFETY: nobody writes a complete record before its space is freed.
        is_complete.then(|| unsafe { record.read() })
    }

    /// No interrupt is under way, as far as the programs know; they must be detached.
    pub fn forget_interrupts(&self) {
        for core in 0..self.cores {
            let position = ptr::from_ref(self.position(core)).cast_mut();
            // SAFETY: within the mapping; no program runs.
            unsafe { (&raw mut (*position).interrupts).write_volatile(0) };
        }
    }
}

/// Completed requests to block devices, of the whole machine, read on demand.
pub struct RequestCompletions {
    programs: LoadedPrograms,
    rings: RecordRings,
    attached: Option<AttachedPrograms>,
}

/// Ring of each core: some 70,000 requests, between two reads.
const COMPLETIONS_BYTES: u64 = 4 << 20;

impl RequestCompletions {
    /// Loads the program; nothing is recorded yet.
    pub fn load() -> Result<Self, UserError> {
        let (programs, rings) = LoadedPrograms::load_some(COMPLETIONS_BYTES, &[COMPLETION], &[])?;
        Ok(Self {
            programs,
            rings,
            attached: None,
        })
    }

    /// Starts recording.
    pub fn begin(&mut self) -> Result<(), UserError> {
        self.attached = Some(self.programs.attach()?);
        Ok(())
    }

    /// Stops recording; records stay until they are drained.
    pub fn stop(&mut self) {
        self.attached = None;
    }

    /// Returns the requests recorded since the last time, core by core.
    pub fn drain(&self, mut sink: impl FnMut(BlockRequest)) {
        let take = |core, record: KernelRecord| {
            if let Some(TraceEventKind::Complete(request)) =
                record.event(core).map(|event| event.kind)
            {
                sink(request);
            }
        };
        self.rings.drain(take, |_| ());
    }
}

// How the programs record each call, by its number.

const ENTRY: u8 = 1;
const EXIT_ALWAYS: u8 = 2;
const EXIT_IF_MORE: u8 = 4;
const EXIT_IF_ZERO: u8 = 8;
const PATH: u8 = 16;
const PATH_IN_DIRECTORY: u8 = 32;
const REPLIES: u8 = 64;

const CALLS: usize = 512;

fn call_flags_table() -> [u8; CALLS] {
    std::array::from_fn(|number| call_flags(number as u32))
}

/// Of messages only exits that moved bytes are recorded, of polls only those that timed out: servers receive in vain and
/// poll before nearly every message.
fn call_flags(number: u32) -> u8 {
    use tierwise_recording::CallKind::{Poll, Receive, Send};
    let shape = syscalls::call_shape(number);
    match shape.kind {
        _ if !syscalls::is_recorded_call(number) => 0,
        Receive | Send if i64::from(number) == libc::SYS_sendto => EXIT_IF_MORE | REPLIES,
        Receive | Send => EXIT_IF_MORE,
        Poll if !shape.is_entered() => EXIT_IF_ZERO,
        _ => ENTRY | EXIT_ALWAYS | path_argument_flag(number),
    }
}

/// Where a call that opens or removes a file has its path.
fn path_argument_flag(number: u32) -> u8 {
    match i64::from(number) {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open | libc::SYS_creat | libc::SYS_unlink => PATH,
        libc::SYS_openat | libc::SYS_openat2 | libc::SYS_unlinkat => PATH_IN_DIRECTORY,
        _ => 0,
    }
}

/// Where `struct pt_regs` has a call's first arguments: `di`, `si`, `dx`, `r10`.
#[cfg(target_arch = "x86_64")]
const ARGUMENT_OFFSETS: [u32; 4] = [112, 104, 96, 56];
/// And its number: `orig_ax`.
#[cfg(target_arch = "x86_64")]
const NUMBER_OFFSET: u32 = 120;

/// `orig_x0`, then `regs[1]` and on: at the end of a call, `regs[0]` is its result.
#[cfg(target_arch = "aarch64")]
const ARGUMENT_OFFSETS: [u32; 4] = [272, 8, 16, 24];
/// `syscallno`
#[cfg(target_arch = "aarch64")]
const NUMBER_OFFSET: u32 = 280;
