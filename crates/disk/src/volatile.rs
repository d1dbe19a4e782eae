//! A store that can lose its power: it knows which writes would be lost with it.
//!
//! The store holds the host's view. Beside it is a log of the writes that are not durable yet, each with the
//! bytes it replaced; a power cut undoes them from it. A write in flight when the power goes was not
//! acknowledged: it is undone, or torn, like one that completed without a flush.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use tierwise_device::{Nanos, SECTOR_BYTES};

use crate::fate::Fate;
use crate::monitor::Monitor;
use crate::store::Store;
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
    cycle: AtomicU64,
    /// Held while bytes are replaced, so that the log has writes to the same sectors in their order. Threads
    /// that complete requests do not need it, and so never wait for a copy.
    order: Monitor<()>,
    log: Monitor<UndoLog>,
}

impl VolatileStore {
    /// A store that is on for the first time.
    pub fn new(store: Box<dyn Store>, cache: WriteCache, write_back: WriteBack) -> Self {
        Self {
            store,
            cache,
            write_back,
            cycle: AtomicU64::new(0),
            order: Monitor::new(()),
            log: Monitor::new(UndoLog::default()),
        }
    }

    /// Number of power cuts so far. Requests of an earlier cycle have no effect, and fail.
    pub fn cycle(&self) -> u64 {
        self.cycle.load(Ordering::Acquire)
    }

    /// Whether flushes do nothing.
    pub fn lies(&self) -> bool {
        self.cache == WriteCache::Lying
    }

    /// Bytes of completed writes that a power cut would put at risk.
    pub fn unflushed_bytes(&self) -> u64 {
        self.log.lock().completed_bytes()
    }

    /// The bytes of a range, as the host sees them.
    pub fn read(&self, offset: u64, length: usize) -> Cow<'_, [u8]> {
        self.store.read(offset, length)
    }

    /// The effect of a request that changes nothing.
    pub fn nothing(&self, cycle: u64) -> Effect {
        let what = What::Nothing;
        Effect { cycle, what }
    }

    /// A write arrives: the host sees it from now on.
    pub fn write(&self, cycle: u64, offset: u64, data: &[u8]) -> Effect {
        let _order = self.order.lock();
        if cycle != self.cycle() {
            return self.nothing(cycle);
        }
        let sectors = offset / SECTOR_BYTES..(offset + data.len() as u64).div_ceil(SECTOR_BYTES);
        let length = (sectors.end - sectors.start) * SECTOR_BYTES;
        let old = self
            .store
            .read(sectors.start * SECTOR_BYTES, length as usize)
            .into_owned();
        let number = self.log.lock().push(sectors, old.into_boxed_slice());
        self.store.write(offset, data);
        let what = What::Write(number);
        Effect { cycle, what }
    }

    /// A discard arrives: its range reads as zeros from now on, also after a power cut.
    pub fn discard(&self, cycle: u64, offset: u64, length: u64) -> Effect {
        let _order = self.order.lock();
        if cycle == self.cycle() {
            let whole = offset.div_ceil(SECTOR_BYTES)..(offset + length) / SECTOR_BYTES;
            self.log
                .lock()
                .push_durable(whole.start..whole.end.max(whole.start));
            self.store.discard(offset, length);
        }
        self.nothing(cycle)
    }

    /// A flush arrives.
    pub fn flush(&self, cycle: u64) -> Effect {
        let what = match self.cache {
            WriteCache::Volatile => What::Flush(self.log.lock().start_flush()),
            WriteCache::Safe | WriteCache::Lying => What::Nothing,
        };
        Effect { cycle, what }
    }

    /// Completes a request at time `now`; returns false if the power went meanwhile, since it then has no
    /// effect.
    #[must_use]
    pub fn complete(&self, effect: &Effect, now: Nanos) -> bool {
        if let What::Nothing = effect.what {
            return effect.cycle == self.cycle();
        }
        let mut log = self.log.lock();
        if effect.cycle != self.cycle() {
            return false;
        }
        match effect.what {
            What::Write(number) if self.cache == WriteCache::Safe => log.make_durable(number),
            What::Write(number) => {
                log.complete(number, now);
                self.write_back(&mut log, now);
            }
            What::Flush(flushed) => log.complete_flush(flushed),
            What::Nothing => {}
        }
        true
    }

    /// The power goes, and comes back: a new cycle begins.
    ///
    /// Without a seed all writes that are not durable are lost; with one, a random subset of their sectors is
    /// kept.
    pub fn cut(&self, keep_random: Option<u64>, now: Nanos) -> CutReport {
        let _order = self.order.lock();
        let mut log = self.log.lock();
        self.write_back(&mut log, now);
        self.cycle.fetch_add(1, Ordering::AcqRel);
        log.cut(&*self.store, &mut Fate::new(keep_random))
    }

    fn write_back(&self, log: &mut UndoLog, now: Nanos) {
        let before = now.saturating_sub(self.write_back.after);
        log.write_back(before, self.write_back.most_bytes);
    }
}
