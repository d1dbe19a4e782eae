//! Ten thousand damaged recordings: each is refused or read, in little memory, and what is read can be relied on.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{Folder, write};
use tierwise_recording::Recording;

const FEW: u64 = 1_000;
const RECORDINGS: u64 = 10_000;
/// Most memory that any of them takes: the recording itself has 30 KB.
const MOST_BYTES: usize = 200 << 20;
const FILES: [&str; 6] = [
    "about.json",
    "threads.parquet",
    "files.parquet",
    "states.parquet",
    "calls.parquet",
    "blocks.parquet",
];

/// The system's allocator, which counts the bytes that are taken and their highest number.
struct Counting;

static TAKEN: AtomicUsize = AtomicUsize::new(0);
static MOST_TAKEN: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does all of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let taken = TAKEN.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST_TAKEN.fetch_max(taken, Ordering::Relaxed);
        // SAFETY: the caller keeps what the layout promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        TAKEN.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the memory comes from `alloc` with this layout.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Numbers in seven bits a byte that a decoder may take memory for.
const COUNTS: [&[u8]; 4] = [
    &[0x80, 0x80, 0x80, 0x80, 0x08],
    &[0xff, 0xff, 0xff, 0xff, 0x0f],
    &[0x80, 0x80, 0x80, 0x40],
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
];

/// SplitMix64 (Steele, Lea and Flood, 2014): small, and the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit.max(1) as u64) as usize
    }
}

/// Damage of the kinds that files suffer, and of those that a decoder fears.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        let end = (at + 1 + random.below(16)).min(bytes.len());
        match random.below(9) {
            0 => bytes.truncate(at),
            1 => bytes[at..end].fill(0),
            2 => bytes[at..end].fill(0xff),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let copy = bytes[at..end].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, copy);
            }
            5 => drop(bytes.splice(at..end, COUNTS[random.below(COUNTS.len())].iter().copied())),
            6 => drop(bytes.splice(at..=at, COUNTS[random.below(COUNTS.len())].iter().copied())),
            7 => bytes[at] = random.below(256) as u8,
            _ => bytes[at] ^= 1 << random.below(8),
        }
        if bytes.is_empty() {
            return;
        }
    }
}

/// Let `about.json` say that the damaged table is what was written, so that the decoder has to cope; sometimes with
/// another number of rows.
fn vouch_for(about: &[u8], file: &str, bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut value: serde_json::Value = serde_json::from_slice(about).unwrap();
    let table = &mut value["tables"][file.trim_end_matches(".parquet")];
    table["size_bytes"] = bytes.len().into();
    table["crc32"] = crc32fast::hash(bytes).into();
    if random.below(8) == 0 {
        table["rows"] = [0, 1, 1 << 18, 30_000_000, u64::MAX][random.below(5)].into();
    }
    value.to_string().into_bytes()
}

struct Bench {
    folder: Folder,
    whole: Vec<Vec<u8>>,
}

impl Bench {
    fn path(&self, file: usize) -> PathBuf {
        self.folder.0.join(FILES[file])
    }

    /// Damage one file, read, and mend it; whether it could be read.
    fn try_once(&self, random: &mut Random) -> bool {
        let file = random.below(FILES.len());
        let mut bytes = self.whole[file].clone();
        damage(&mut bytes, random);
        if file != 0 && random.below(4) != 0 {
            let about = vouch_for(&self.whole[0], FILES[file], &bytes, random);
            fs::write(self.path(0), about).unwrap();
        }
        fs::write(self.path(file), bytes).unwrap();
        let read = Recording::read(&self.folder.0);
        for changed in [0, file] {
            fs::write(self.path(changed), &self.whole[changed]).unwrap();
        }
        read.is_ok_and(|recording| recording.check().is_ok())
    }
}

#[test]
fn no_damage_brings_the_reader_down() {
    read_damaged("fuzz", 0..FEW);
}

#[test]
#[ignore = "takes long; `make test` runs it"]
fn no_damage_of_ten_thousand_brings_the_reader_down() {
    read_damaged("fuzz-more", FEW..RECORDINGS);
}

fn read_damaged(name: &str, seeds: std::ops::Range<u64>) {
    let folder = Folder::new(name);
    write(&folder);
    let whole = FILES
        .map(|file| fs::read(folder.0.join(file)).unwrap())
        .to_vec();
    let bench = Bench { folder, whole };
    // What the decoder asserts is caught, and would fill the output.
    std::panic::set_hook(Box::new(|_| {}));
    let tried = seeds.clone().count();
    let read = seeds
        .filter(|&seed| bench.try_once(&mut Random(seed)))
        .count();
    drop(std::panic::take_hook());
    assert!(Recording::read(&bench.folder.0).is_ok());
    assert!(
        read < tried / 2,
        "{read} of {tried} were read: the damage is none"
    );
    let most_bytes = MOST_TAKEN.load(Ordering::Relaxed);
    assert!(most_bytes < MOST_BYTES, "{} MiB", most_bytes >> 20);
}
