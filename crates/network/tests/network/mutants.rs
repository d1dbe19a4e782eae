//! Recordings whose rows say what no database did: each is refused, or its replay comes to an end.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use tierwise_device::random::SplitMix;
use tierwise_device::{Library, Profile};
use tierwise_network::{Mode, Program, ReproductionRequest, Scenario, recorded_mode, replay_all};
use tierwise_recording::{NONE, Recording, Role};
use tierwise_work::Work;

use crate::changes::change;
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
fn library() -> Library {
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
    Library::new(texts.map(named).collect())
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

fn replayed(recording: &Recording, library: &Library, elsewhere: &Profile, seed: u64) -> Came {
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
    let mode = match recorded_mode(&program) {
        Mode::Once => Mode::Once,
        Mode::Steady { .. } => Mode::Steady {
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
