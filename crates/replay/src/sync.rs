//! Jobs: syncs go through their stages, and whoever waited goes on.

use tierwise_device::Op;
use tierwise_recording::Role;
use tierwise_work::SyncScript;

use crate::jobs::{Job, Stage, Then, Writes, stage};
use crate::session::NONE;
use crate::simulation::Simulation;
use crate::tally::Doing;

impl<'a> Simulation<'a> {
    /// A session makes files of a role durable, and waits.
    pub(crate) fn sync(&mut self, index: u32, role: Role, script: u32) {
        self.does(index, Doing::Write);
        let job = self.jobs.add(Job {
            then: Then::Session(index),
            writes: Writes::Script(script),
            role,
            stage: 0,
            pending: 0,
            leader: NONE,
        });
        self.advance_job(job);
    }

    /// One request of a job was answered.
    pub(crate) fn answer(&mut self, index: u32) {
        let job = self.jobs.get(index);
        job.pending -= 1;
        if job.pending == 0 {
            self.advance_job(index);
        }
    }

    /// Sends a job's next stage, or ends it.
    pub(crate) fn advance_job(&mut self, index: u32) {
        loop {
            let job = *self.jobs.get(index);
            let sent = match job.writes {
                Writes::None => None,
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

    /// Sends what a sync's stage consists of; how many requests, or none if it was the last.
    fn send_stage(&mut self, index: u32, job: &Job) -> Option<u32> {
        let script = self.script_of(job);
        let journal = script.is_some_and(|script| !script.journal_writes.is_empty());
        let recorded = script.map_or(1, |script| script.flushes);
        let flushes = self.storage.layout().flushes(job.role, recorded, journal);
        let (now, role) = (self.now, job.role);
        match stage(job.stage, flushes) {
            Stage::Data => Some(self.send_data(index, job)),
            Stage::Journal => {
                let writes = script.map_or(&[][..], |script| &script.journal_writes);
                let storage = &mut self.storage;
                let send =
                    |&(sector, sectors)| storage.send(now, index, role, Op::Write, sector, sectors);
                Some(writes.iter().map(send).sum())
            }
            Stage::Flush => Some(self.storage.flush(now, index, role)),
            Stage::Done => None,
        }
    }

    fn script_of(&self, job: &Job) -> Option<&'a SyncScript> {
        let work = &self.program.work;
        match job.writes {
            Writes::None => None,
            Writes::Script(script) => work.scripts.get(script as usize),
            Writes::Log { script, .. } => work.log.as_ref()?.scripts.get(script as usize),
        }
    }

    fn send_data(&mut self, index: u32, job: &Job) -> u32 {
        let (now, role, work) = (self.now, job.role, &self.program.work);
        let mut sent = 0;
        match job.writes {
            Writes::Script(script) => {
                for &(sector, sectors) in &work.scripts[script as usize].writes {
                    self.cache.clean(role, sector, sectors);
                    sent += self
                        .storage
                        .send(now, index, role, Op::Write, sector, sectors);
                }
            }
            Writes::Log { from, to, .. } => {
                let parts = self.log.as_ref().map(|log| log.writes(from, to));
                for (sector, sectors) in parts.into_iter().flatten().filter(|part| part.1 > 0) {
                    sent += self
                        .storage
                        .send(now, index, role, Op::Write, sector, sectors);
                }
            }
            Writes::None => {}
        }
        sent
    }

    fn end_job(&mut self, index: u32) {
        let job = self.jobs.remove(index);
        match job.then {
            Then::Session(session) => self.proceed(session),
            Then::Sent(session) => self.arrived(session, index),
            Then::Flushed => self.flushed(job),
            Then::Sweep(role) => self.swept(role),
        }
    }
}
