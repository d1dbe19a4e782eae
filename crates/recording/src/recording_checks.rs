//! Guarantees for every user of a recording, checked once.

use std::path::Path;

use crate::{
    About, BlockOp, Burst, CallKind, NONE, Recording, State, UNKNOWN, UserError, manifest,
};

/// Times, offsets and sizes stay below, so that sums of two of them cannot overflow.
const LIMIT: u64 = 1 << 62;
/// Largest number of cores that Linux can be built for.
const MOST_CORES: u32 = 8192;
/// Longest time in a recording: 19 hours.
const LONGEST_NS: u64 = 1 << 46;
/// Most bytes of one call: the kernel stops a page short of 2 GiB (`MAX_RW_COUNT`).
const MOST_MOVED_BYTES: u64 = 1 << 31;
/// Most sectors of one request: 2 GiB.
const MOST_MOVED_SECTORS: u32 = 1 << 22;

/// The fault, in words that name the table and the row.
type Fault = Result<(), String>;

impl Recording {
    /// Check that indices are in range, rows in the order of [`Recording`], stretches of time not negative.
    ///
    /// # Errors
    /// Naming the table and the row.
    pub fn check(&self) -> Result<(), UserError> {
        self.check_in(Path::new("recording"))
    }

    pub(crate) fn check_in(&self, directory: &Path) -> Result<(), UserError> {
        check_about(&self.about)
            .and_then(|()| self.check_files())
            .and_then(|()| self.check_states())
            .and_then(|()| self.check_calls())
            .and_then(|()| self.check_blocks())
            .map_err(|problem| manifest::damaged_file_error(directory, problem))
    }

    /// States name calls that exist; needed before anything is sorted.
    pub(crate) fn require_known_calls(&self, directory: &Path) -> Result<(), UserError> {
        check_every_row("states", &self.states, |state| {
            check_index("call", state.call, self.calls.len(), true)
        })
        .map_err(|problem| manifest::damaged_file_error(directory, problem))
    }

    /// A stretch of time lies within a burst: recorders cut events at the burst's edges.
    fn in_burst(&self, start_ns: u64, end_ns: u64) -> Fault {
        check_stretch(start_ns, end_ns)?;
        let bursts = &self.about.bursts;
        let begun = bursts.partition_point(|burst| burst.start_ns <= start_ns);
        let within = |burst: &Burst| end_ns <= burst.end_ns;
        match bursts[..begun].last().is_some_and(within) {
            true => Ok(()),
            false => Err(format!("lies from {start_ns} to {end_ns}, in no burst")),
        }
    }

    fn check_files(&self) -> Fault {
        let devices = self.about.devices.len();
        check_every_row("files", &self.files, |file| {
            check_index("device", file.device, devices, true)?;
            check_below("size_bytes", file.size_bytes)
        })
    }

    fn check_states(&self) -> Fault {
        let (threads, calls) = (self.threads.len(), self.calls.len());
        check_every_row("states", &self.states, |state| {
            check_index("thread", state.thread, threads, false)?;
            check_index("waker", state.waker, threads, true)?;
            check_index("call", state.call, calls, true)?;
            if u32::from(state.cpu) >= MOST_CORES {
                return Err(format!("cpu is {}", state.cpu));
            }
            self.in_burst(state.start_ns, state.end_ns)
        })?;
        let overlap =
            |pair: &[State]| pair[0].thread == pair[1].thread && pair[0].end_ns > pair[1].start_ns;
        match self.states.windows(2).position(overlap) {
            Some(at) => Err(format!("states: row {} overlaps the one before", at + 1)),
            None => check_rows_in_order("states", &self.states, |state| {
                (state.thread, state.start_ns)
            }),
        }
    }

    fn check_calls(&self) -> Fault {
        let (threads, files) = (self.threads.len(), self.files.len());
        check_every_row("calls", &self.calls, |call| {
            check_index("thread", call.thread, threads, false)?;
            check_index("file", call.file, files, true)?;
            check_below("size_bytes", call.size_bytes)?;
            let moves = matches!(call.kind, CallKind::Read | CallKind::Write);
            if moves && call.size_bytes >= MOST_MOVED_BYTES {
                return Err(format!("a call moved {} bytes", call.size_bytes));
            }
            check_known_below("offset_bytes", call.offset_bytes)?;
            if call.transaction_status.is_some() && call.kind != CallKind::Send {
                return Err("a call that sends nothing has a transaction_status".to_owned());
            }
            self.in_burst(call.start_ns, call.end_ns)
        })?;
        check_rows_in_order("calls", &self.calls, |call| (call.thread, call.start_ns))
    }

    fn check_blocks(&self) -> Fault {
        let (threads, files) = (self.threads.len(), self.files.len());
        check_every_row("blocks", &self.blocks, |block| {
            check_index("device", block.device, self.about.devices.len(), false)?;
            check_index("thread", block.thread, threads, true)?;
            check_index("file", block.file, files, true)?;
            check_known_below("sector", block.sector)?;
            let moves = matches!(block.op, BlockOp::Read | BlockOp::Write);
            if moves && block.sectors >= MOST_MOVED_SECTORS {
                return Err(format!("a request moved {} sectors", block.sectors));
            }
            self.in_burst(block.issued_ns, block.completed_ns)
        })?;
        check_rows_in_order("blocks", &self.blocks, |block| block.issued_ns)
    }
}

fn check_about(about: &About) -> Fault {
    if !(1..=MOST_CORES).contains(&about.machine.cores) {
        return Err(format!(
            "about.json: machine.cores is {}",
            about.machine.cores
        ));
    }
    if !(about.duration_s.is_finite() && about.duration_s >= 0.0) {
        return Err("about.json: duration_s is no length of time".to_owned());
    }
    let foreign = about.foreign_programs.iter();
    let foreign = foreign.map(|program| ("foreign_programs", program.cpu_share));
    let shares = [
        ("foreign_cpu_share", about.foreign_cpu_share),
        ("stolen_cpu_share", about.stolen_cpu_share),
    ];
    for (name, share) in shares.into_iter().chain(foreign) {
        if !(0.0..=1.0).contains(&share) {
            return Err(format!("about.json: {name} is no share"));
        }
    }
    check_every_row("about.json: bursts", &about.bursts, |burst| {
        check_stretch(burst.start_ns, burst.end_ns)?;
        if let Some(storage) = &burst.storage_cpu {
            check_below("server_ns", storage.server_ns)?;
            check_below("kernel_ns", storage.kernel_ns)?;
        }
        Ok(())
    })?;
    check_every_row("about.json: devices", &about.devices, |device| {
        check_below("first_sector", device.first_sector)?;
        check_below("sectors", device.sectors)
    })?;
    check_rows_in_order("about.json: bursts", &about.bursts, |burst| burst.start_ns)
}

fn check_every_row<R>(table: &str, rows: &[R], check: impl Fn(&R) -> Fault) -> Fault {
    for (at, row) in rows.iter().enumerate() {
        check(row).map_err(|problem| format!("{table}: row {at}: {problem}"))?;
    }
    Ok(())
}

fn check_rows_in_order<R, K: PartialOrd>(table: &str, rows: &[R], key: impl Fn(&R) -> K) -> Fault {
    match rows
        .windows(2)
        .position(|pair| key(&pair[0]) > key(&pair[1]))
    {
        Some(at) => Err(format!("{table}: row {} comes before row {at}", at + 1)),
        None => Ok(()),
    }
}

fn check_index(name: &str, value: u32, rows: usize, optional: bool) -> Fault {
    if (value as usize) < rows || (optional && value == NONE) {
        return Ok(());
    }
    Err(format!("{name} is {value}, and there are {rows}"))
}

fn check_stretch(start_ns: u64, end_ns: u64) -> Fault {
    if start_ns > end_ns {
        return Err(format!("ends at {end_ns}, before it starts at {start_ns}"));
    }
    if end_ns - start_ns >= LONGEST_NS {
        return Err(format!("lasts {} ns, which cannot be", end_ns - start_ns));
    }
    check_below("its end", end_ns)
}

fn check_below(name: &str, value: u64) -> Fault {
    match value < LIMIT {
        true => Ok(()),
        false => Err(format!("{name} is {value}, which cannot be")),
    }
}

fn check_known_below(name: &str, value: u64) -> Fault {
    match value {
        UNKNOWN => Ok(()),
        value => check_below(name, value),
    }
}
