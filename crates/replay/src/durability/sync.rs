//! Syncs: jobs that pass through their stages, and the actions at their end.
//!
//! Source: `ext4_sync_file` (fs/ext4/fsync.c) waits until the data is written, requests the journal's commit or a
//! flush, and waits again: so its caller wakes in between, on its core. Not modelled: processor time of the
//! journal's thread.

use tierwise_device::Op;
use tierwise_recording::Role;
use tierwise_work::{SyncScript, TimeCategory};

use crate::block::jobs::{Job, OnDone, SyncWrites};
use crate::durability::sync_stage::{Stage, range, stage};
use crate::kernel::events::Event;
use crate::kernel::session::{NONE, Resume, SERVER};
use crate::kernel::simulation::Simulation;

/// Stage of a job whose data is being written.
const AFTER_DATA: u32 = 1;

impl<'a> Simulation<'a> {
    /// A session syncs files of a role, and waits.
    pub(crate) fn sync(&mut self, index: u32, role: Role, script: u32) {
        if self.is_shared(script) && !self.leads_second_log(index, script) {
            return;
        }
        self.set_activity(index, TimeCategory::Write);
        let job = self.jobs.add(Job::new(
            OnDone::Session(index),
            SyncWrites::Recorded(script),
            role,
        ));
        self.advance_job(job);
    }

    /// Whether a recorded sync is one of the engine's second log.
    fn is_shared(&self, script: u32) -> bool {
        let scripts = &self.program.work.scripts;
        scripts
            .get(script as usize)
            .is_some_and(|script| script.shared)
    }

    /// One request of a job was completed.
    pub(crate) fn request_done(&mut self, index: u32) {
        let job = self.jobs.get(index);
        job.pending -= 1;
        if job.stage == AFTER_DATA {
            let sent = self.send_data(index);
            self.jobs.get(index).pending += sent;
        }
        if self.jobs.get(index).pending > 0 {
            return;
        }
        match self.session_after_data(index) {
            Some(session) => {
                self.request_core(session, SERVER, 1, Resume::DataWritten(index));
            }
            None => self.advance_job(index),
        }
    }

    /// The session that wakes when a sync's data is written, to request the journal's commit or a flush.
    fn session_after_data(&mut self, index: u32) -> Option<u32> {
        let job = *self.jobs.get(index);
        let session = match job.on_done {
            OnDone::Session(session) => session,
            OnDone::LogFlush => job.leader,
            _ => NONE,
        };
        let more = || {
            let (script, flushes) = self.flushes_of(&job);
            flushes > 0 || has_journal(script)
        };
        (job.stage == AFTER_DATA && session != NONE && more()).then_some(session)
    }

    /// The syncing session requests the next stage, and waits.
    pub(crate) fn data_written(&mut self, session: u32, job: u32) {
        let log = self.jobs.get(job).on_done == OnDone::LogFlush;
        self.set_activity(
            session,
            if log {
                TimeCategory::LogDevice
            } else {
                TimeCategory::Write
            },
        );
        self.leave_core(session);
        self.advance_job(job);
    }

    /// Sends a job's next stage, or ends the job.
    pub(crate) fn advance_job(&mut self, index: u32) {
        loop {
            let job = *self.jobs.get(index);
            let sent = match job.writes {
                SyncWrites::None => None,
                _ => self.send_stage(index, &job),
            };
            let Some(sent) = sent else {
                return self.end_job(index);
            };
            let job = self.jobs.get(index);
            job.stage += 1;
            job.pending = sent;
            if sent > 0 {
                return;
            }
        }
    }

    /// Sends the requests of a stage; their number, or none after the last stage.
    fn send_stage(&mut self, index: u32, job: &Job) -> Option<u32> {
        let (script, flushes) = self.flushes_of(job);
        let (now, role) = (self.now, job.role);
        match stage(job.stage, flushes, by_caller(script)) {
            Stage::Data => Some(self.send_data(index) + self.await_write_back(index)),
            Stage::Journal => Some(self.send_journal(index, role, script, false)),
            Stage::Record => Some(self.send_journal(index, role, script, true)),
            Stage::Flush => Some(self.storage.flush(now, index, role)),
            Stage::Done => None,
        }
    }

    /// Sends a sync's journal writes: the last one, which is the commit record, or all others.
    fn send_journal(
        &mut self,
        index: u32,
        role: Role,
        script: Option<&SyncScript>,
        record: bool,
    ) -> u32 {
        let writes = script.map_or(&[][..], |script| &script.journal_writes);
        let (body, last) = writes.split_at(writes.len().saturating_sub(1));
        let (now, storage) = (self.now, &mut self.storage);
        let sent = if record { last } else { body }.iter();
        sent.map(|&(sector, sectors)| storage.send(now, index, role, Op::Write, sector, sectors))
            .sum()
    }

    /// The recorded sync, and its number of flushes on this device.
    pub(crate) fn flushes_of(&self, job: &Job) -> (Option<&'a SyncScript>, u32) {
        let script = self.script_of(job);
        let recorded = script.map_or(1, |script| script.flushes);
        let layout = self.storage.layout();
        let flushes = layout.flushes(job.role, recorded, has_journal(script));
        (script, flushes)
    }

    fn script_of(&self, job: &Job) -> Option<&'a SyncScript> {
        let work = &self.program.work;
        match job.writes {
            SyncWrites::None => None,
            SyncWrites::Recorded(script) => work.scripts.get(script as usize),
            SyncWrites::Log { script, .. } => work.log.as_ref()?.scripts.get(script as usize),
        }
    }

    /// Sends a job's writes up to the write-back limit; the number of requests.
    fn send_data(&mut self, index: u32) -> u32 {
        let mut sent = 0;
        loop {
            let job = *self.jobs.get(index);
            let many = job.pending + sent > 0 && matches!(job.writes, SyncWrites::Recorded(_));
            if many && !self.storage.has_room(job.role, false) {
                break;
            }
            let Some((sector, sectors)) = self.next_write(index, &job) else {
                break;
            };
            sent += self
                .storage
                .send(self.now, index, job.role, Op::Write, sector, sectors);
        }
        sent
    }

    /// The next write of a job: first the writes that only the recorded sync shows, then the dirty pages of
    /// its files.
    fn next_write(&mut self, index: u32, job: &Job) -> Option<(u64, u32)> {
        let cursor = job.cursor;
        let (write, next) = match job.writes {
            SyncWrites::None => return None,
            SyncWrites::Log { from, to, .. } => {
                let parts = self.log.as_ref()?.writes(from, to);
                let part = parts.get(cursor as usize).filter(|part| part.1 > 0)?;
                (*part, cursor + 1)
            }
            SyncWrites::Recorded(script) => {
                let script = &self.program.work.scripts[script as usize];
                let told = script.writes.len() as u64;
                if cursor < told {
                    (script.writes[cursor as usize], cursor + 1)
                } else {
                    let (first, end) = range(script);
                    let from = (cursor - told).max(first);
                    let run = self.dirty_pages.next_dirty(job.role, from, end)?;
                    (run, told + run.0 + u64::from(run.1))
                }
            }
        };
        self.jobs.get(index).cursor = next;
        Some(write)
    }

    fn end_job(&mut self, index: u32) {
        let job = self.jobs.remove(index);
        match job.on_done {
            // By an event: if nothing had to be sent, the session is still executing the step.
            OnDone::Session(session) => {
                self.events.push(self.now, Event::Wake(session));
                if matches!(job.writes, SyncWrites::Recorded(script) if self.is_shared(script)) {
                    self.second_log_synced(job.role);
                }
            }
            OnDone::AsyncRequest(session) => self.async_request_done(session, index),
            OnDone::LogFlush => self.log_flushed(job),
            OnDone::ReadAhead => self.read_ahead_done(index),
            OnDone::WriteBack(role) => self.write_back_done(role, index),
        }
    }
}

/// Whether the syncing session writes the journal itself.
pub(crate) fn by_caller(script: Option<&SyncScript>) -> bool {
    script.is_some_and(|script| script.by_caller)
}

fn has_journal(script: Option<&SyncScript>) -> bool {
    script.is_some_and(|script| !script.journal_writes.is_empty())
}
