//! Sessions and files.

use tierwise_device::Op;
use tierwise_recording::Role;
use tierwise_work::{Part, Reuse};

use crate::block::jobs::{Job, Then, Writes};
use crate::kernel::session::{Resume, Sent, WaitsFor};
use crate::kernel::simulation::Simulation;
use crate::program::operation::Ask;

impl Simulation<'_> {
    /// A session uses a file; whether it can go on at once.
    pub(crate) fn ask_file(
        &mut self,
        index: u32,
        ask: Ask,
        role: Role,
        sector: u64,
        sectors: u32,
    ) -> bool {
        let reads = matches!(ask, Ask::Read | Ask::SendRead);
        let rest = match reads {
            true => std::mem::take(&mut self.session(index).goes_on),
            false => 0,
        };
        match ask {
            Ask::Look if !self.memory.answers(true, self.reuse_of(index)) => {
                self.read_anew(index, role, sector, sectors)
            }
            Ask::Read | Ask::SendRead if self.memory.answers(false, self.reuse_of(index)) => true,
            Ask::Read | Ask::SendRead if self.has_been_read(index, role) => true,
            Ask::Look | Ask::Read if self.is_coming(index, role, sector, sectors) => {
                self.block(index)
            }
            Ask::Look => {
                self.read_on(role, sector, sectors);
                self.has_come(index, role, sector, sectors)
            }
            _ if reads && self.storage.layout().reads_ahead_otherwise(role) => {
                self.stream(role, sector, sectors, rest);
                ask == Ask::SendRead || self.has_come(index, role, sector, 1)
            }
            Ask::SendRead => self.send(index, Op::Read, role, sector, sectors),
            Ask::SendWrite => self.send(index, Op::Write, role, sector, sectors),
            Ask::WriteBack => self.give_back(index, role, sector, sectors),
            Ask::Forget => {
                self.cache.clean(role, sector, sectors);
                true
            }
            Ask::Read => self.request(index, Op::Read, role, sector, sectors),
            Ask::WriteThrough => self.request(index, Op::Write, role, sector, sectors),
            Ask::Write if self.cache.is_full() => {
                self.session(index).resume = Resume::Retry;
                self.set_activity(index, Part::Write);
                self.flusher.throttled.push_back(index);
                self.look_for_old_pages_now();
                self.block(index)
            }
            Ask::Write => {
                self.cache.write(self.now, role, sector, sectors);
                self.wake_flusher();
                true
            }
        }
    }

    /// Sends a request and goes on.
    pub(crate) fn send(
        &mut self,
        index: u32,
        op: Op,
        role: Role,
        sector: u64,
        sectors: u32,
    ) -> bool {
        let job = self.send_for(Then::Sent(index), op, role, sector, sectors);
        let sent = Sent {
            job,
            role,
            sector,
            sectors,
        };
        self.session(index).sent.push(sent);
        true
    }

    /// Sends a request and waits.
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
                Part::Read
            } else {
                Part::Write
            },
        );
        self.send_for(Then::Session(index), op, role, sector, sectors);
        self.block(index)
    }

    /// Whether what a session reads is there although it was not in the recording: where memory holds all files, pages
    /// are read for the first time, or since something else than this work drove them out. That goes with time, not
    /// with what sessions do: who begins anew reads no more of them in a time than were recorded.
    fn has_been_read(&mut self, index: u32, role: Role) -> bool {
        let mut through_cache = self.program.work.read_ahead.iter();
        if !self.memory.holds_all() || !through_cache.any(|known| known.0 == role) {
            return false;
        }
        let anew = self.sessions[index as usize].cycle > 0;
        let due = self.now as f64 * self.program.reads_per_ns();
        if anew && self.memory.misses as f64 >= due {
            return true;
        }
        self.memory.misses += 1;
        false
    }

    fn reuse_of(&self, index: u32) -> Reuse {
        self.sessions[index as usize].reuse
    }

    fn send_for(&mut self, then: Then, op: Op, role: Role, sector: u64, sectors: u32) -> u32 {
        let job = self.send_job(then, op, role, sector, sectors);
        if op == Op::Read {
            self.wake_flusher();
        }
        job
    }

    /// Sends a request as a job of its own; what is read comes into the page cache.
    pub(crate) fn send_job(
        &mut self,
        then: Then,
        op: Op,
        role: Role,
        sector: u64,
        sectors: u32,
    ) -> u32 {
        let job = self.jobs.add(Job::new(then, Writes::None, role));
        let sent = self.storage.send(self.now, job, role, op, sector, sectors);
        self.jobs.get(job).pending = sent;
        if op == Op::Read {
            self.cache.read(sectors);
        }
        job
    }

    /// Whether a session must wait for what it sent before.
    pub(crate) fn is_coming(&mut self, index: u32, role: Role, sector: u64, sectors: u32) -> bool {
        let end = sector + u64::from(sectors);
        let overlaps = |sent: &&Sent| {
            sent.role == role && sent.sector < end && sector < sent.sector + u64::from(sent.sectors)
        };
        let session = self.session(index);
        let Some(job) = session.sent.iter().find(overlaps).map(|sent| sent.job) else {
            return false;
        };
        session.waits_for = WaitsFor::Job(job);
        self.set_activity(index, Part::Read);
        true
    }

    /// A session waits until all that it sent was answered; whether it was.
    pub(crate) fn drain(&mut self, index: u32) -> bool {
        if self.session(index).sent.is_empty() {
            return true;
        }
        self.session(index).waits_for = WaitsFor::All;
        self.set_activity(index, Part::Write);
        self.block(index)
    }

    /// What a session sent was answered.
    pub(crate) fn arrived(&mut self, index: u32, job: u32) {
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
