//! Recordings whose rows say what no database did: each is refused, or its replay comes to an end.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use tierwise_device::random::SplitMix;
use tierwise_device::{Profile, ProfileLibrary};
use tierwise_network::{
    Program, ReplayMode, ReproductionRequest, Scenario, recorded_run_mode, replay_all,
};
use tierwise_recording::{
    Block, BlockOp, Call, CallKind, NONE, Recording, Role, State, StateKind, ThreadClass, UNKNOWN,
};
use tierwise_work::Work;

use crate::support::memory;

/// Of each recording; fewer where every sum is checked, which takes ten times as long.
const MUTANTS: u64 = if cfg!(debug_assertions) { 250 } else { 1_000 };
/// One in so many goes through files as a recording does; the others are only checked as a reader checks.
const THROUGH_FILES: u64 = 50;
/// Rows of states that are left of a shipped recording.
const ROWS: usize = 500;
/// Virtual time of work that goes on.
const SPAN_S: f64 = 0.2;

/// How far a mutant came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    /// It was no recording, or no work was in it.
    NotToReplay,
    /// Its replay was refused.
    Refused,
    /// Its replay came to an end.
    ToTheEnd,
}

/// A directory of one test, gone with it.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn shipped(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

/// The profiles that those of recorded devices may refer to.
fn library() -> ProfileLibrary {
    let files = fs::read_dir(shipped("python/tierwise/data/devices")).expect("shipped profiles");
    let paths = files.map(|file| file.expect("a file").path());
    let texts = paths.filter(|path| path.extension().is_some_and(|kind| kind == "toml"));
    let named = |path: PathBuf| {
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        (name, fs::read_to_string(&path).expect("a text"))
    };
    ProfileLibrary::new(texts.map(named).collect())
}

/// The first rows of a shipped recording, as if it had been ended then.
fn beginning(name: &str) -> Recording {
    let mut cut = Recording::read(&shipped("examples/recordings").join(name)).expect("it ships");
    let mut starts: Vec<u64> = cut.states.iter().map(|state| state.start_ns).collect();
    starts.sort_unstable();
    let end_ns = starts.get(ROWS).copied().unwrap_or(u64::MAX);
    let mut place = vec![NONE; cut.calls.len()];
    let kept = (0..cut.calls.len()).filter(|&at| cut.calls[at].start_ns < end_ns);
    for (new, old) in (0..).zip(kept) {
        place[old] = new;
    }
    cut.calls.retain(|call| call.start_ns < end_ns);
    for call in &mut cut.calls {
        call.end_ns = call.end_ns.min(end_ns);
    }
    cut.states.retain(|state| state.start_ns < end_ns);
    for state in &mut cut.states {
        state.end_ns = state.end_ns.min(end_ns);
        state.call = place.get(state.call as usize).copied().unwrap_or(NONE);
    }
    cut.blocks.retain(|block| block.completed_ns <= end_ns);
    let bursts = &mut cut.about.bursts;
    bursts.retain(|burst| burst.start_ns < end_ns);
    let last = bursts.last_mut().expect("a burst");
    last.end_ns = last.end_ns.min(end_ns);
    cut.about.duration_s = (last.end_ns - bursts[0].start_ns) as f64 / 1e9;
    cut.about.transactions = None;
    cut
}

/// What a reader makes of rows, if it takes them.
fn read(mut recording: Recording, folder: Option<&Folder>) -> Option<Recording> {
    if let Some(folder) = folder {
        let _ = fs::remove_dir_all(&folder.0);
        let written = recording.write(&folder.0).ok();
        return written.and_then(|()| Recording::read(&folder.0).ok());
    }
    let calls = recording.calls.len();
    let mut states = recording.states.iter();
    if states.any(|state| state.call != NONE && state.call as usize >= calls) {
        return None;
    }
    recording.sort();
    recording.check().ok()?;
    Some(recording)
}

fn replayed(
    recording: &Recording,
    library: &ProfileLibrary,
    elsewhere: &Profile,
    seed: u64,
) -> Came {
    let work = Work::from_recording(recording).ok();
    let Some(program) = work.and_then(|work| Program::new(work, library).ok()) else {
        return Came::NotToReplay;
    };
    let stop = AtomicBool::new(false);
    let retrace = ReproductionRequest {
        seeds: vec![seed],
        span_s: Some(SPAN_S),
    };
    let recorded = retrace.run(&program, 1, &stop);
    let mode = match recorded_run_mode(&program) {
        ReplayMode::Once => ReplayMode::Once,
        ReplayMode::Steady { .. } => ReplayMode::Steady {
            span_ns: (SPAN_S * 1e9) as u64,
        },
    };
    let devices = program.summary().devices.len();
    let mut scenario = Scenario::recorded(devices, 2, mode, seed);
    scenario.placement = Role::ALL
        .map(|role| (role, scenario.devices.len()))
        .to_vec();
    scenario.devices.push(Some(elsewhere.clone()));
    let predicted = replay_all(&program, &[scenario], 1, &stop).remove(0);
    let recorded = recorded.map(|run| run.outcomes[0].clone());
    for outcome in [recorded, predicted] {
        let Ok(outcome) = outcome else {
            return Came::Refused;
        };
        let shares: f64 = outcome.shares.iter().map(|share| share.1).sum();
        assert!(outcome.elapsed_s.is_finite() && shares.is_finite());
        assert!(shares < 1.0 + 1e-6, "shares sum to {shares}");
    }
    Came::ToTheEnd
}

fn mutants_of(name: &str) {
    let (whole, library, elsewhere) = (beginning(name), library(), memory(50.0));
    assert_eq!(
        replayed(&whole, &library, &elsewhere, 0),
        Came::ToTheEnd,
        "{name} itself"
    );
    let temporary = format!("tierwise-mutants-{name}-{}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(temporary));
    let came = |seed: u64| {
        let mut mutant = whole.clone();
        change(&mut mutant, &mut SplitMix::new(seed));
        let files = seed.is_multiple_of(THROUGH_FILES).then_some(&folder);
        read(mutant, files).map_or(Came::NotToReplay, |read| {
            replayed(&read, &library, &elsewhere, seed)
        })
    };
    let mut to_the_end = 0;
    for seed in 0..MUTANTS {
        let came = catch_unwind(AssertUnwindSafe(|| came(seed)));
        let came = came.unwrap_or_else(|_| panic!("{name}: mutant {seed} brought it down"));
        to_the_end += u64::from(came == Came::ToTheEnd);
    }
    assert!(
        to_the_end > MUTANTS / 4,
        "{name}: {to_the_end} of {MUTANTS} mutants were replayed: too few to tell anything"
    );
}

#[test]
fn mutants_of_a_mix_bring_nothing_down() {
    mutants_of("order-entry");
}

#[test]
fn mutants_of_laps_bring_nothing_down() {
    mutants_of("small-objects");
}

#[test]
fn mutants_of_one_transaction_bring_nothing_down() {
    mutants_of("keyed-update");
}

// Changes of a recording's rows such as no recorder makes.

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
