//! File accesses of sessions: hits, buffered writes, synchronous and asynchronous requests.

use tierwise_device::Op;
use tierwise_recording::Role;
use tierwise_work::{Mechanism, Reuse, TimeCategory};

use crate::block::jobs::{Job, OnDone, SyncWrites};
use crate::kernel::session::{Resume, Sent, WaitsFor};
use crate::kernel::simulation::Simulation;
use crate::program::operation::FileAccess;

impl Simulation<'_> {
    /// A session accesses a file; whether it can continue at once.
    pub(crate) fn access_file(
        &mut self,
        index: u32,
        access: FileAccess,
        role: Role,
        sector: u64,
        sectors: u32,
    ) -> bool {
        let reads = matches!(access, FileAccess::Read | FileAccess::AsyncRead);
        let rest = match reads {
            true => std::mem::take(&mut self.session(index).stream_sectors),
            false => 0,
        };
        match access {
            FileAccess::CachedRead if !self.cache_hits.is_hit(true, self.reuse_of(index)) => {
                self.read_evicted(index, role, sector, sectors)
            }
            FileAccess::Read | FileAccess::AsyncRead
                if self.cache_hits.is_hit(false, self.reuse_of(index)) =>
            {
                true
            }
            FileAccess::Read | FileAccess::AsyncRead if self.is_in_memory(index, role) => true,
            FileAccess::CachedRead | FileAccess::Read
                if self.awaits_own_request(index, role, sector, sectors) =>
            {
                self.block(index)
            }
            FileAccess::CachedRead => {
                self.continue_stream(role, sector, sectors);
                self.await_read_ahead(index, role, sector, sectors)
            }
            _ if reads && self.storage.layout().read_ahead_differs(role) => {
                self.read_stream(role, sector, sectors, rest);
                access == FileAccess::AsyncRead || self.await_read_ahead(index, role, sector, 1)
            }
            FileAccess::AsyncRead => self.send(index, Op::Read, role, sector, sectors),
            FileAccess::AsyncWrite => self.send(index, Op::Write, role, sector, sectors),
            FileAccess::WriteBack => self.start_writing_back(index, role, sector, sectors),
            FileAccess::Discard => {
                self.dirty_pages.clean(role, sector, sectors);
                true
            }
            FileAccess::Read => self.request(index, Op::Read, role, sector, sectors),
            FileAccess::WriteThrough => self.request(index, Op::Write, role, sector, sectors),
            FileAccess::Write
                if self.dirty_pages.is_full() && !self.program.is_off(Mechanism::DirtyLimit) =>
            {
                self.session(index).resume = Resume::Retry;
                self.set_activity(index, TimeCategory::Write);
                self.flusher.throttled.push_back(index);
                self.start_write_back();
                self.block(index)
            }
            FileAccess::Write => {
                self.dirty_pages.write(self.now, role, sector, sectors);
                self.wake_flusher();
                true
            }
        }
    }

    /// Sends an asynchronous request.
    pub(crate) fn send(
        &mut self,
        index: u32,
        op: Op,
        role: Role,
        sector: u64,
        sectors: u32,
    ) -> bool {
        let job = self.send_for(OnDone::AsyncRequest(index), op, role, sector, sectors);
        let sent = Sent {
            job,
            role,
            sector,
            sectors,
        };
        self.session(index).sent.push(sent);
        true
    }

    /// Sends a request and waits for it.
    pub(crate) fn request(
        &mut self,
        index: u32,
        op: Op,
        role: Role,
        sector: u64,
        sectors: u32,
    ) -> bool {
        self.set_activity(
            index,
            if op == Op::Read {
                TimeCategory::Read
            } else {
                TimeCategory::Write
            },
        );
        self.send_for(OnDone::Session(index), op, role, sector, sectors);
        self.block(index)
    }

    /// Whether a recorded miss is a hit now. Where memory holds all files, pages are read the first time, or
    /// after a process outside this work evicted them. Evictions follow time, not work: restarted sessions
    /// read these pages at no more than the recorded rate.
    fn is_in_memory(&mut self, index: u32, role: Role) -> bool {
        let mut through_cache = self.program.work.read_ahead.iter();
        let off = self.program.is_off(Mechanism::WarmReads);
        if off || !self.cache_hits.holds_all() || !through_cache.any(|known| known.0 == role) {
            return false;
        }
        let anew = self.sessions[index as usize].cycle > 0;
        let due = self.now as f64 * self.program.reads_per_ns();
        if anew && self.cache_hits.misses as f64 >= due {
            return true;
        }
        self.cache_hits.misses += 1;
        false
    }

    fn reuse_of(&self, index: u32) -> Reuse {
        self.sessions[index as usize].reuse
    }

    fn send_for(&mut self, on_done: OnDone, op: Op, role: Role, sector: u64, sectors: u32) -> u32 {
        let job = self.send_job(on_done, op, role, sector, sectors);
        if op == Op::Read {
            self.wake_flusher();
        }
        job
    }

    /// Sends a request as a job of its own; a read inserts pages into the page cache.
    pub(crate) fn send_job(
        &mut self,
        on_done: OnDone,
        op: Op,
        role: Role,
        sector: u64,
        sectors: u32,
    ) -> u32 {
        let job = self.jobs.add(Job::new(on_done, SyncWrites::None, role));
        let sent = self.storage.send(self.now, job, role, op, sector, sectors);
        self.jobs.get(job).pending = sent;
        if op == Op::Read {
            self.dirty_pages.read(sectors);
        }
        job
    }

    /// Whether a session must wait for an asynchronous request of its own.
    pub(crate) fn awaits_own_request(
        &mut self,
        index: u32,
        role: Role,
        sector: u64,
        sectors: u32,
    ) -> bool {
        let end = sector + u64::from(sectors);
        let overlaps = |sent: &&Sent| {
            sent.role == role && sent.sector < end && sector < sent.sector + u64::from(sent.sectors)
        };
        let session = self.session(index);
        let Some(job) = session.sent.iter().find(overlaps).map(|sent| sent.job) else {
            return false;
        };
        session.waits_for = WaitsFor::Job(job);
        self.set_activity(index, TimeCategory::Read);
        true
    }

    /// Waits for all asynchronous requests of a session; whether there were none.
    pub(crate) fn drain(&mut self, index: u32) -> bool {
        if self.session(index).sent.is_empty() {
            return true;
        }
        self.session(index).waits_for = WaitsFor::All;
        self.set_activity(index, TimeCategory::Write);
        self.block(index)
    }

    /// An asynchronous request of a session was completed.
    pub(crate) fn async_request_done(&mut self, index: u32, job: u32) {
        let session = self.session(index);
        session.sent.retain(|sent| sent.job != job);
        let goes_on = match session.waits_for {
            WaitsFor::Nothing => false,
            WaitsFor::All => session.sent.is_empty(),
            WaitsFor::Job(awaited) => awaited == job,
        };
        if goes_on {
            session.waits_for = WaitsFor::Nothing;
            self.proceed(index);
        }
    }
}
