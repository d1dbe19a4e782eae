//! Changes of a recording's rows such as no recorder makes.

use tierwise_device::random::SplitMix;
use tierwise_recording::{
    Block, BlockOp, Call, CallKind, Recording, Role, State, StateKind, ThreadClass, UNKNOWN,
};

/// Numbers at which something changes.
const CORNERS: [u64; 10] = [
    0,
    1,
    511,
    4_096,
    1 << 20,
    (1 << 22) - 1,
    (1 << 31) - 1,
    1 << 46,
    (1 << 62) - 1,
    UNKNOWN,
];
/// How far a number is moved that is moved a little.
const LITTLE: usize = 100_000;

/// Makes one to four changes.
pub fn change(recording: &mut Recording, random: &mut SplitMix) {
    for _ in 0..=random.below(4) {
        match random.below(12) {
            0..=3 => change_state(&mut recording.states, random),
            4..=6 => change_call(&mut recording.calls, random),
            7..=9 => change_block(&mut recording.blocks, random),
            10 => change_names(recording, random),
            _ => change_about(recording, random),
        }
    }
}

/// Another number: near, far, at a corner, or that of another row.
fn number(random: &mut SplitMix, own: u64, others: u64) -> u64 {
    let little = random.below(LITTLE) as u64;
    match random.below(8) {
        0 => own.saturating_add(little),
        1 => own.saturating_sub(little),
        2 => own.saturating_mul(2),
        3 => own / 2,
        4 | 5 => others,
        _ => one_of(random, &CORNERS),
    }
}

/// An instant between two, mostly; the rows stay in order then.
fn instant(random: &mut SplitMix, own: u64, (from, to): (u64, u64)) -> u64 {
    match random.below(6) {
        0 => from,
        1 => to,
        2 => number(random, own, from),
        _ => from + random.below(to.saturating_sub(from) as usize + 1) as u64,
    }
}

fn one_of<T: Copy>(random: &mut SplitMix, all: &[T]) -> T {
    all[random.below(all.len())]
}

/// The number of a row to be changed, and another row that lends what it says; none of no rows.
fn row_and_another<T: Copy>(random: &mut SplitMix, rows: &[T]) -> Option<(usize, T)> {
    (!rows.is_empty()).then(|| (random.below(rows.len()), one_of(random, rows)))
}

fn change_state(rows: &mut Vec<State>, random: &mut SplitMix) {
    let Some((at, like)) = row_and_another(random, rows) else {
        return;
    };
    let row = &mut rows[at];
    let span = (row.start_ns, row.end_ns);
    match random.below(9) {
        0 => row.kind = one_of(random, StateKind::ALL),
        1 => row.waker = like.waker,
        2 => row.call = like.call,
        3 => row.cpu = number(random, row.cpu.into(), like.cpu.into()) as u16,
        4 => row.start_ns = instant(random, row.start_ns, span),
        5 => row.end_ns = instant(random, row.end_ns, span),
        6 => row.thread = like.thread,
        7 => drop(rows.remove(at)),
        _ => {
            // A long wait in place of all that follows of the thread.
            let (thread, start_ns) = (row.thread, row.start_ns);
            let later = |state: &State| state.thread == thread && state.start_ns > start_ns;
            let ends = rows.iter().filter(|state| later(state));
            let last_ns = ends.map(|state| state.end_ns).max().unwrap_or(span.1);
            rows[at].end_ns = last_ns;
            rows.retain(|state| !later(state));
        }
    }
}

fn change_call(rows: &mut [Call], random: &mut SplitMix) {
    let Some((at, like)) = row_and_another(random, rows) else {
        return;
    };
    let row = &mut rows[at];
    let span = (row.start_ns, row.end_ns);
    match random.below(10) {
        0 | 1 => row.kind = one_of(random, CallKind::ALL),
        2 | 3 => row.file = like.file,
        4 => row.offset_bytes = number(random, row.offset_bytes, like.offset_bytes),
        5 => row.size_bytes = number(random, row.size_bytes, like.size_bytes),
        6 => row.start_ns = instant(random, row.start_ns, span),
        7 => row.end_ns = instant(random, row.end_ns, span),
        8 => row.asynchronous ^= true,
        _ => row.failed ^= true,
    }
}

fn change_block(rows: &mut Vec<Block>, random: &mut SplitMix) {
    let Some((at, like)) = row_and_another(random, rows) else {
        return;
    };
    let row = &mut rows[at];
    let span = (row.issued_ns, row.completed_ns);
    match random.below(11) {
        0 => row.op = one_of(random, BlockOp::ALL),
        1 => row.device = like.device,
        2 | 3 => row.sector = number(random, row.sector, like.sector),
        4 => row.sectors = number(random, row.sectors.into(), like.sectors.into()) as u32,
        5 => row.issued_ns = instant(random, row.issued_ns, span),
        6 => row.completed_ns = instant(random, row.completed_ns, span),
        7 => row.thread = like.thread,
        8 => row.file = like.file,
        9 => drop(rows.remove(at)),
        _ => (row.fua, row.preflush, row.meta) = (like.meta, !row.preflush, !row.meta),
    }
}

/// What threads and files are.
fn change_names(recording: &mut Recording, random: &mut SplitMix) {
    let (threads, files) = (&mut recording.threads, &mut recording.files);
    let (thread, file) = (random.below(threads.len()), random.below(files.len()));
    let like = files[random.below(files.len())].clone();
    match random.below(4) {
        0 => threads[thread].class = one_of(random, ThreadClass::ALL),
        1 => files[file].role = Some(one_of(random, &Role::ALL)),
        2 => files[file].device = like.device,
        _ => files[file].size_bytes = number(random, files[file].size_bytes, like.size_bytes),
    }
}

/// What the recording says of its machine and its time.
fn change_about(recording: &mut Recording, random: &mut SplitMix) {
    let about = &mut recording.about;
    let device = random.below(about.devices.len());
    let device = &mut about.devices[device];
    let burst = random.below(about.bursts.len());
    let burst = &mut about.bursts[burst];
    match random.below(9) {
        0 => device.sectors = number(random, device.sectors, 0),
        1 => device.first_sector = number(random, device.first_sector, 0),
        2 => device.shared = random.below(4) as u32,
        3 => device.profile = None,
        4 => about.machine.cores = 1 + random.below(200) as u32,
        5 => about.machine.memory_bytes = number(random, about.machine.memory_bytes, 1 << 20),
        6 => about.foreign_cpu_share = random.below(101) as f64 / 100.0,
        7 => about.transactions = Some(number(random, 1_000, 1)),
        _ => burst.end_ns = instant(random, burst.end_ns, (burst.start_ns, burst.end_ns)),
    }
}
