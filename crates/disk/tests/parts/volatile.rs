//! What a power cut leaves, against a description that remembers every write to every sector.

use proptest::prelude::*;
use tierwise_disk::{
    ByteStore, CompletionEffect, MemoryStore, VolatileStore, WriteBackPolicy, WriteCacheMode,
};

const SECTOR: usize = 512;
const SECTORS: usize = 16;
const NEVER: WriteBackPolicy = WriteBackPolicy {
    after: u64::MAX,
    most_bytes: u64::MAX,
};

fn store(cache: WriteCacheMode, write_back: WriteBackPolicy) -> VolatileStore {
    let memory = MemoryStore::new((SECTORS * SECTOR) as u64).expect("memory");
    VolatileStore::new(Box::new(memory), cache, write_back)
}

/// Everything that happens to a disk. Completions name one of what is in flight, by its place.
#[derive(Clone, Debug)]
enum Step {
    Write { sector: usize, sectors: usize },
    Complete(usize),
    Flush,
    CompleteFlush(usize),
    Discard { sector: usize, sectors: usize },
    Cut(Option<u64>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let range = || (0..SECTORS, 1..6_usize).prop_map(|(at, n)| (at, n.min(SECTORS - at)));
    let step = prop_oneof![
        6 => range().prop_map(|(sector, sectors)| Step::Write { sector, sectors }),
        5 => (0..8_usize).prop_map(Step::Complete),
        2 => Just(Step::Flush),
        2 => (0..3_usize).prop_map(Step::CompleteFlush),
        1 => range().prop_map(|(sector, sectors)| Step::Discard { sector, sectors }),
        1 => prop::option::of(any::<u64>()).prop_map(Step::Cut),
    ];
    prop::collection::vec(step, 1..80)
}

/// One write as the host knows it. Its number is what it writes, so that no two are alike.
#[derive(Clone)]
struct Write {
    number: u32,
    completed: bool,
    durable: bool,
}

/// The disk under test and, for each sector, what was ever written there since it was last certain.
struct World {
    disk: VolatileStore,
    cache: WriteCacheMode,
    history: Vec<Vec<Write>>,
    writes: Vec<(u32, CompletionEffect)>,
    flushes: Vec<(Vec<u32>, CompletionEffect)>,
    last: u32,
}

impl World {
    fn new(cache: WriteCacheMode) -> Self {
        let certain = vec![Write {
            number: 0,
            completed: true,
            durable: true,
        }];
        Self {
            disk: store(cache, NEVER),
            cache,
            history: vec![certain; SECTORS],
            writes: Vec::new(),
            flushes: Vec::new(),
            last: 0,
        }
    }

    fn content(&self, sector: usize) -> u32 {
        let bytes = self.disk.read((sector * SECTOR) as u64, SECTOR);
        let words: Vec<u32> = bytes
            .chunks(4)
            .map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")))
            .collect();
        assert!(
            words.iter().all(|&word| word == words[0]),
            "sector {sector} is torn within"
        );
        words[0]
    }

    fn change(&mut self, numbers: &[u32], change: impl Fn(&mut Write)) {
        let all = self.history.iter_mut().flatten();
        all.filter(|write| numbers.contains(&write.number))
            .for_each(change);
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Write { sector, sectors } => self.write(sector, sectors),
            Step::Complete(place) => self.complete(place),
            Step::Flush => {
                let completed = self.history.iter().flatten();
                let numbers = completed
                    .filter(|write| write.completed)
                    .map(|w| w.number)
                    .collect();
                self.flushes
                    .push((numbers, self.disk.flush(self.disk.cycle())));
            }
            Step::CompleteFlush(place) => self.complete_flush(place),
            Step::Discard { sector, sectors } => self.discard(sector, sectors),
            Step::Cut(keep_random) => self.cut(keep_random),
        }
        for (sector, writes) in self.history.iter().enumerate() {
            let newest = writes.last().expect("at least what is certain").number;
            assert_eq!(
                self.content(sector),
                newest,
                "the host sees the newest in {sector}"
            );
        }
    }

    fn write(&mut self, sector: usize, sectors: usize) {
        self.last += 1;
        let data = self.last.to_le_bytes().repeat(sectors * SECTOR / 4);
        let effect = self
            .disk
            .write(self.disk.cycle(), (sector * SECTOR) as u64, &data);
        self.writes.push((self.last, effect));
        for history in &mut self.history[sector..sector + sectors] {
            history.push(Write {
                number: self.last,
                completed: false,
                durable: false,
            });
        }
    }

    fn complete(&mut self, place: usize) {
        if place >= self.writes.len() {
            return;
        }
        let (number, effect) = self.writes.remove(place);
        assert!(self.disk.complete(&effect, 0));
        let durable = self.cache == WriteCacheMode::Safe;
        self.change(&[number], |write| {
            (write.completed, write.durable) = (true, durable);
        });
    }

    fn complete_flush(&mut self, place: usize) {
        if place >= self.flushes.len() {
            return;
        }
        let (numbers, effect) = self.flushes.remove(place);
        assert!(self.disk.complete(&effect, 0));
        if self.cache != WriteCacheMode::Lying {
            self.change(&numbers, |write| write.durable = true);
        }
    }

    fn discard(&mut self, sector: usize, sectors: usize) {
        let (start, length) = ((sector * SECTOR) as u64, (sectors * SECTOR) as u64);
        let effect = self.disk.discard(self.disk.cycle(), start, length);
        assert!(self.disk.complete(&effect, 0));
        for history in &mut self.history[sector..sector + sectors] {
            history.push(Write {
                number: 0,
                completed: true,
                durable: true,
            });
        }
    }

    fn cut(&mut self, keep_random: Option<u64>) {
        let report = self.disk.cut(keep_random, 0);
        assert_eq!(
            report.kept_sectors + report.lost_sectors,
            report.unflushed_sectors
        );
        let nothing_kept = report.kept_sectors == 0 && report.torn_writes == 0;
        assert!(keep_random.is_some() || nothing_kept, "{report:?}");
        let mut kept = 0;
        for sector in 0..SECTORS {
            let found = self.content(sector);
            let history = &mut self.history[sector];
            let durable = history
                .iter()
                .rposition(|write| write.durable)
                .expect("the first is");
            kept += u64::from(found != history[durable].number);
            let mut allowed =
                history[durable..]
                    .iter()
                    .take(if keep_random.is_some() { usize::MAX } else { 1 });
            assert!(
                allowed.any(|write| write.number == found),
                "sector {sector} has {found}"
            );
            let certain = Write {
                number: found,
                completed: true,
                durable: true,
            };
            *history = vec![certain];
        }
        assert_eq!(report.kept_sectors, kept);
        self.fail_what_is_in_flight();
    }

    fn fail_what_is_in_flight(&mut self) {
        let effects = self
            .writes
            .drain(..)
            .map(|(_, effect)| effect)
            .chain(self.flushes.drain(..).map(|(_, effect)| effect));
        for effect in effects {
            assert!(
                !self.disk.complete(&effect, 0),
                "a request of before the cut succeeds"
            );
        }
        let late = self.disk.write(self.disk.cycle() - 1, 0, &[9; SECTOR]);
        assert!(!self.disk.complete(&late, 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_sector_holds_what_was_flushed_or_what_came_after(
        steps in steps(),
        cache in prop_oneof![
            Just(WriteCacheMode::Safe), Just(WriteCacheMode::Volatile), Just(WriteCacheMode::Lying)
        ],
    ) {
        let mut world = World::new(cache);
        steps.iter().for_each(|step| world.step(step));
        world.cut(None);
        world.cut(Some(1));
    }
}

fn write_at(disk: &mut VolatileStore, sector: u64, value: u8, now: u64) {
    let effect = disk.write(disk.cycle(), sector * SECTOR as u64, &[value; SECTOR]);
    assert!(disk.complete(&effect, now));
}

#[test]
fn a_lying_disk_writes_back_when_data_is_old_or_too_much() {
    let write_back = WriteBackPolicy {
        after: 1_000,
        most_bytes: 2 * SECTOR as u64,
    };
    let mut disk = store(WriteCacheMode::Lying, write_back);
    assert!(disk.lies());
    assert!(
        ![WriteCacheMode::Safe, WriteCacheMode::Volatile]
            .iter()
            .any(|cache| store(*cache, write_back).lies())
    );
    write_at(&mut disk, 0, 1, 100);
    let flush = disk.flush(disk.cycle());
    assert!(disk.complete(&flush, 150));
    assert_eq!(disk.unflushed_bytes(), SECTOR as u64);
    (1..4).for_each(|sector| write_at(&mut disk, sector, 2, 200));
    assert_eq!(
        disk.unflushed_bytes(),
        2 * SECTOR as u64,
        "the oldest two are written back"
    );
    disk.cut(None, 1_000);
    let firsts: Vec<u8> = (0..4)
        .map(|sector| disk.read(sector * SECTOR as u64, 1)[0])
        .collect();
    assert_eq!(firsts, [1, 2, 0, 0]);
    write_at(&mut disk, 5, 7, 2_000);
    assert_eq!(
        disk.cut(None, 3_001).unflushed_sectors,
        0,
        "it was written back in time"
    );
}

#[test]
fn the_same_seed_keeps_the_same_sectors_and_others_differ() {
    let kept = |seed| {
        let mut disk = store(WriteCacheMode::Volatile, NEVER);
        (0..SECTORS as u64).for_each(|sector| write_at(&mut disk, sector, 1, 0));
        disk.cut(Some(seed), 0);
        disk.read(0, SECTORS * SECTOR).to_vec()
    };
    assert_eq!(kept(1), kept(1));
    let different: std::collections::BTreeSet<Vec<u8>> = (0..20).map(kept).collect();
    assert!(
        different.len() > 15,
        "{} of 20 seeds differ",
        different.len()
    );
}

#[test]
fn a_large_write_is_torn_by_some_seed() {
    let torn = (0..20).filter(|&seed| {
        let mut disk = store(WriteCacheMode::Volatile, NEVER);
        let effect = disk.write(disk.cycle(), 0, &[1; SECTORS * SECTOR]);
        assert!(disk.complete(&effect, 0));
        disk.cut(Some(seed), 0).torn_writes == 1
    });
    let count = torn.count();
    assert!(
        (2..15).contains(&count),
        "{count} of 20 torn, where one in three is meant to be"
    );
}

// Bytes kept and forgotten, without a cut.

const SIZE: u64 = 1 << 20;

#[test]
fn bytes_read_are_bytes_written() {
    let store = MemoryStore::new(SIZE).expect("memory");
    assert!(store.read(0, SIZE as usize).iter().all(|&byte| byte == 0));
    store.write(SIZE - 3, &[1, 2, 3]);
    store.write(4095, &[4, 5]);
    assert_eq!(*store.read(SIZE - 4, 4), [0, 1, 2, 3]);
    assert_eq!(*store.read(4094, 4), [0, 4, 5, 0]);
}

#[test]
fn a_discarded_range_is_zero_and_its_neighbours_are_not() {
    let ranges = [
        (0, SIZE),
        (512, 512),
        (4096, 8192),
        (4095, 4098),
        (100, 9000),
        (8191, 1),
        (4096, 0),
    ];
    for (offset, length) in ranges {
        let store = MemoryStore::new(SIZE).expect("memory");
        store.write(0, &vec![7; SIZE as usize]);
        store.discard(offset, length);
        for (position, &byte) in store.read(0, SIZE as usize).iter().enumerate() {
            let inside = (offset..offset + length).contains(&(position as u64));
            assert_eq!(
                byte,
                if inside { 0 } else { 7 },
                "byte {position} after discard of {offset}+{length}"
            );
        }
    }
}

#[test]
fn memory_is_taken_only_for_what_is_written() {
    let store = MemoryStore::new(1 << 40).expect("addresses for a terabyte");
    store.write(1 << 39, &[9]);
    assert_eq!(*store.read((1 << 39) - 1, 3), [0, 9, 0]);
}

#[test]
#[should_panic(expected = "within the store")]
fn a_range_past_the_end_is_refused() {
    MemoryStore::new(SIZE)
        .expect("memory")
        .write(SIZE - 1, &[1, 2]);
}
