//! The event loop: it owns virtual time and passes each event to its module.

use tierwise_device::Nanos;
use tierwise_device::random::SplitMix;
use tierwise_work::TimeCategory;

use crate::api::error::ReplayError;
use crate::block::jobs::Jobs;
use crate::block::storage::Storage;
use crate::durability::log::Log;
use crate::durability::second_log::SecondLog;
use crate::engines::wal::CheckpointedLog;
use crate::kernel::arrivals::Arrivals;
use crate::kernel::events::{Event, Events};
use crate::kernel::metrics::{Metrics, Milestone};
use crate::kernel::progress::Progress;
use crate::kernel::session::{Resume, SessionState};
use crate::locks::hot_locks::HotLocks;
use crate::locks::thread_dependencies::ThreadDependencies;
use crate::page_cache::cache_hits::CacheHits;
use crate::page_cache::dirty_pages::DirtyPages;
use crate::page_cache::flusher::Flusher;
use crate::page_cache::read_ahead_windows::ReadAhead;
use crate::program::prepared::Program;
use crate::scheduler::client_threads::ClientThread;
use crate::scheduler::cores::Cores;

/// Pause of a session whose whole program took no time.
const EMPTY_CYCLE_PAUSE_NS: Nanos = 1_000_000;

/// A run.
pub(crate) struct Simulation<'a> {
    pub(crate) program: &'a Program,
    pub(crate) now: Nanos,
    pub(crate) events: Events,
    pub(crate) cores: Cores,
    pub(crate) storage: Storage,
    pub(crate) jobs: Jobs,
    pub(crate) sessions: Vec<SessionState>,
    pub(crate) clients: Vec<ClientThread>,
    pub(crate) log: Option<Log<'a>>,
    pub(crate) second_log: SecondLog,
    /// Content of the log, where checkpoints follow the number of commits.
    pub(crate) wal: Option<CheckpointedLog<'a>>,
    pub(crate) locks: HotLocks<'a>,
    pub(crate) dirty_pages: DirtyPages,
    pub(crate) cache_hits: CacheHits,
    pub(crate) flusher: Flusher,
    pub(crate) read_ahead: ReadAhead,
    pub(crate) dependencies: ThreadDependencies,
    pub(crate) metrics: Metrics,
    pub(crate) random: SplitMix,
    pub(crate) cpu_speed: f64,
    /// Interval at which background load wants a slice of each core.
    pub(crate) background_period_ns: Nanos,
    /// Whether sessions start their program again at its end.
    pub(crate) steady: bool,
    /// Arrivals of transactions, in an open loop.
    pub(crate) arrivals: Option<Arrivals>,
    /// Client sessions that have not finished.
    pub(crate) unfinished: u32,
    /// Number of transactions at which each paced session starts its turn.
    pub(crate) due_by_work: Vec<(u64, u32)>,
    pub(crate) over: bool,
    pub(crate) progress: Progress,
    /// Jobs of completed requests; empty between events.
    pub(crate) completed_jobs: Vec<u32>,
}

impl Simulation<'_> {
    /// Runs to the end.
    ///
    /// # Errors
    ///
    /// The run makes no progress.
    pub(crate) fn run(&mut self) -> Result<(), ReplayError> {
        while !self.over {
            self.advance()?;
        }
        Ok(())
    }

    /// Handles the next event.
    ///
    /// # Errors
    ///
    /// The run makes no progress.
    pub(crate) fn advance(&mut self) -> Result<(), ReplayError> {
        let (event_at, device_at) = (self.events.next(), self.storage.next());
        if device_at <= event_at && device_at != Nanos::MAX {
            self.now = self.now.max(device_at);
            self.advance_devices();
        } else if let Some(event) = self.events.pop() {
            self.now = self.now.max(event_at);
            self.handle(event);
        }
        while let Some((request, path_ns)) = self.storage.next_departing() {
            self.events
                .push(self.now + path_ns, Event::PathDone(request));
        }
        self.progress.check_progress(self.now, &self.sessions)
    }

    /// Time of the next event, where other databases may have changed a shared device.
    pub(crate) fn next_event_at(&mut self) -> Nanos {
        self.events.next().min(self.storage.next_of_shared())
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Core(core) => self.end_cpu_burst(core),
            Event::Wake(session) => self.resume(session),
            Event::Begin(session) => self.begin_turn(session),
            Event::PathDone(request) => self.storage.arrive(self.now, request),
            Event::Flusher => self.periodic_log_flush(),
            Event::WriteBack => self.periodic_write_back(),
            Event::Count => self.begin_counting(),
            Event::End => self.over = true,
            Event::Arrival => self.arrive(),
        }
    }

    fn advance_devices(&mut self) {
        let mut completed_jobs = std::mem::take(&mut self.completed_jobs);
        self.storage.advance(self.now, &mut completed_jobs);
        self.progress
            .note_completions(self.now, completed_jobs.len());
        for job in completed_jobs.drain(..) {
            self.request_done(job);
        }
        self.completed_jobs = completed_jobs;
    }

    /// Counts a client's transaction; may end the warm-up or the run.
    pub(crate) fn end_transaction(&mut self) {
        match self.metrics.count_transaction() {
            Some(Milestone::WarmUpOver) => self.begin_counting(),
            Some(Milestone::Enough) => self.over = true,
            None => {}
        }
    }

    fn begin_counting(&mut self) {
        if self.metrics.is_counting() {
            return;
        }
        self.metrics.start(self.now);
        self.cores.reset_busy_time(self.now);
        self.storage.reset_traffic(self.now);
    }

    /// Continues a session whose wait is over.
    pub(crate) fn resume(&mut self, session: u32) {
        let resume = std::mem::replace(&mut self.session(session).resume, Resume::Next);
        match resume {
            Resume::Next => self.proceed(session),
            Resume::Retry => {
                self.session(session).position -= 1;
                self.proceed(session);
            }
            Resume::ClientDone => self.client_done(session),
            Resume::RecheckFlush => self.recheck_flush(session),
            Resume::LeadFlush => self.lead(session),
            Resume::SendFlush => self.send_flush(session),
            Resume::DataWritten(job) => self.data_written(session, job),
            Resume::ReleaseLog => self.release_log(session),
            Resume::Committed => self.log_durable(session),
        }
    }

    pub(crate) fn session(&mut self, session: u32) -> &mut SessionState {
        &mut self.sessions[session as usize]
    }

    /// Sets the time category of a session from now on.
    pub(crate) fn set_activity(&mut self, session: u32, activity: TimeCategory) {
        let now = self.now;
        let state = &mut self.sessions[session as usize];
        let activity = if state.replied {
            TimeCategory::Client
        } else {
            activity
        };
        if state.activity == activity {
            return;
        }
        if state.counts {
            self.metrics
                .add_time(state.activity, state.activity_since, now);
        }
        (state.activity, state.activity_since) = (activity, now);
    }

    /// Starts a session's program again, or finishes the session; whether it can continue at once.
    pub(crate) fn restart_session(&mut self, index: u32) -> bool {
        let routine = self.session(index).program_index as usize;
        let endless = self.steady || self.program.sessions[routine].replicates_log;
        let now = self.now;
        let session = self.session(index);
        session.position = 0;
        session.cycle += 1;
        let took_no_time = session.cycle_began == now;
        session.cycle_began = now;
        if !endless {
            session.finished = true;
            self.drop_snapshot(index);
            self.release_locks(index);
            let session = self.session(index);
            if session.counts {
                self.unfinished -= 1;
                self.over = self.unfinished == 0;
            }
            self.set_activity(index, TimeCategory::Other);
            return false;
        }
        if took_no_time {
            self.events
                .push(now + EMPTY_CYCLE_PAUSE_NS, Event::Wake(index));
        }
        !took_no_time
    }
}
