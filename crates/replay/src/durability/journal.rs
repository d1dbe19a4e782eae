//! The file system's journal thread, on cores.
//!
//! Source: `jbd2_journal_commit_transaction` (fs/jbd2/commit.c), see docs/reference/work-model.md. Its thread
//! is woken by the session that syncs, when its blocks are written, and when its commit record is durable;
//! then it wakes that session. Each time it needs a core. Not modelled: commits of one
//! file system that wait for each other.

use tierwise_device::Nanos;

use crate::durability::sync::by_caller;
use crate::durability::sync_stage::{Stage, stage};
use crate::kernel::events::Event;
use crate::kernel::session::Resume;
use crate::kernel::simulation::Simulation;

impl Simulation<'_> {
    /// Starts the processor work before a job's next stage; whether there is any.
    pub(crate) fn start_journal_work(&mut self, index: u32) -> bool {
        let job = *self.jobs.get(index);
        let (script, flushes) = self.flushes_of(&job);
        let writes = script.map_or(0, |script| script.journal_writes.len());
        if writes == 0 || job.is_ready || by_caller(script) {
            return false;
        }
        let rules = self.program.work.journal;
        let before = (job.stage > 0).then(|| stage(job.stage - 1, flushes, false));
        let (ran_ns, thread) = match (before, stage(job.stage, flushes, false)) {
            (_, Stage::Journal) => (rules.begins_ns, true),
            (Some(Stage::Journal), _) if writes > 1 => (rules.goes_on_ns, true),
            (_, Stage::Done) => (rules.ends_ns, true),
            (Some(Stage::Flush | Stage::Record), _) => (rules.relays_ns, false),
            _ => return false,
        };
        let ran_ns = (f64::from(ran_ns) / self.cpu_speed) as Nanos;
        match thread {
            _ if ran_ns == 0 => return false,
            true => self.run_journal_thread(index, ran_ns),
            false => self
                .events
                .push(self.now + ran_ns, Event::StageReady(index)),
        }
        true
    }

    /// The journal thread needs a core for a job.
    fn run_journal_thread(&mut self, job: u32, ran_ns: Nanos) {
        let index = self.idle_io_thread();
        let session = self.session(index);
        session.resume = Resume::JournalThreadDone(job);
        session.pending_ns = ran_ns;
        self.start_or_enqueue(index);
    }

    /// The journal thread has run for a job.
    pub(crate) fn journal_thread_done(&mut self, index: u32, job: u32) {
        self.leave_core(index);
        self.idle_io_threads.push(index);
        self.stage_ready(job);
    }

    /// The processor work before a job's next stage is done.
    pub(crate) fn stage_ready(&mut self, index: u32) {
        self.jobs.get(index).is_ready = true;
        self.advance_job(index);
    }
}
