//! A store that can lose its power: it knows which writes would be lost with it.
//!
//! The store holds the host's view. Beside it is a log of the writes that are not durable yet, each with the
//! bytes it replaced; a power cut undoes them from it. A write in flight when the power goes was not
//! acknowledged: it is undone, or torn, like one that completed without a flush.

use tierwise_device::{Nanos, SECTOR_BYTES};

use crate::store::Store;
use crate::undo_log::Fate;
use crate::undo_log::{CutReport, UndoLog};

/// When a completed write survives a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteCache {
    /// At once: there is no write cache, or one that is protected.
    Safe,
    /// When a flush that arrived after it has completed, or the disk has written it back.
    Volatile,
    /// When the disk has written it back: a flush is acknowledged and does nothing.
    Lying,
}

/// When a disk writes back of its own accord, oldest first.
#[derive(Clone, Copy, Debug)]
pub struct WriteBack {
    /// This long after a write completed.
    pub after: Nanos,
    /// As soon as there is more than this, in bytes.
    pub most_bytes: u64,
}

/// The effect of a request in flight once it is completed.
#[derive(Debug)]
pub struct Effect {
    cycle: u64,
    what: What,
}

#[derive(Debug)]
enum What {
    Nothing,
    Write(u64),
    Flush(u64),
}

/// A store with a write cache in front. A *cycle* is the time from one power cut to the next.
pub struct VolatileStore {
    store: Box<dyn Store>,
    cache: WriteCache,
    write_back: WriteBack,
    cycle: u64,
    log: UndoLog,
}

impl VolatileStore {
    /// A store that is on for the first time.
    pub fn new(store: Box<dyn Store>, cache: WriteCache, write_back: WriteBack) -> Self {
        Self {
            store,
            cache,
            write_back,
            cycle: 0,
            log: UndoLog::default(),
        }
    }

    /// Number of power cuts so far. Requests of an earlier cycle have no effect, and fail.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// Whether flushes do nothing.
    pub fn lies(&self) -> bool {
        self.cache == WriteCache::Lying
    }

    /// Bytes of completed writes that a power cut would put at risk.
    pub fn unflushed_bytes(&self) -> u64 {
        self.log.completed_bytes()
    }

    /// The bytes of a range, as the host sees them.
    pub fn read(&self, offset: u64, length: usize) -> &[u8] {
        self.store.read(offset, length)
    }

    /// The effect of a request that changes nothing.
    pub fn nothing(&self, cycle: u64) -> Effect {
        let what = What::Nothing;
        Effect { cycle, what }
    }

    /// A write arrives: the host sees it from now on.
    pub fn write(&mut self, cycle: u64, offset: u64, data: &[u8]) -> Effect {
        if cycle != self.cycle() {
            return self.nothing(cycle);
        }
        let sectors = offset / SECTOR_BYTES..(offset + data.len() as u64).div_ceil(SECTOR_BYTES);
        let length = (sectors.end - sectors.start) * SECTOR_BYTES;
        let old = self
            .store
            .read(sectors.start * SECTOR_BYTES, length as usize);
        let number = self.log.push(sectors, old);
        self.store.write(offset, data);
        let what = What::Write(number);
        Effect { cycle, what }
    }

    /// A discard arrives: its range reads as zeros from now on, also after a power cut.
    pub fn discard(&mut self, cycle: u64, offset: u64, length: u64) -> Effect {
        if cycle == self.cycle() {
            let whole = offset.div_ceil(SECTOR_BYTES)..(offset + length) / SECTOR_BYTES;
            self.log
                .push_durable(whole.start..whole.end.max(whole.start));
            self.store.discard(offset, length);
        }
        self.nothing(cycle)
    }

    /// A flush arrives.
    pub fn flush(&mut self, cycle: u64) -> Effect {
        let what = match self.cache {
            WriteCache::Volatile => What::Flush(self.log.start_flush()),
            WriteCache::Safe | WriteCache::Lying => What::Nothing,
        };
        Effect { cycle, what }
    }

    /// Completes a request at time `now`; returns false if the power went meanwhile, since it then has no
    /// effect.
    #[must_use]
    pub fn complete(&mut self, effect: &Effect, now: Nanos) -> bool {
        if let What::Nothing = effect.what {
            return effect.cycle == self.cycle();
        }
        if effect.cycle != self.cycle() {
            return false;
        }
        match effect.what {
            What::Write(number) if self.cache == WriteCache::Safe => self.log.make_durable(number),
            What::Write(number) => {
                self.log.complete(number, now);
                self.write_back(now);
            }
            What::Flush(flushed) => self.log.complete_flush(flushed),
            What::Nothing => {}
        }
        true
    }

    /// The power goes, and comes back: a new cycle begins.
    ///
    /// Without a seed all writes that are not durable are lost; with one, a random subset of their sectors is
    /// kept.
    pub fn cut(&mut self, keep_random: Option<u64>, now: Nanos) -> CutReport {
        self.write_back(now);
        self.cycle += 1;
        self.log.cut(&*self.store, &mut Fate::new(keep_random))
    }

    fn write_back(&mut self, now: Nanos) {
        let before = now.saturating_sub(self.write_back.after);
        self.log.write_back(before, self.write_back.most_bytes);
    }
}
