//! The machine: its stations, the state of its tasks, and the loop that lets virtual time pass.
//!
//! A station is a type with its own state; tasks use it through methods of [`TaskHandle`], which wait on virtual time. The
//! machine models no device, core, cache or lock itself.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Waker};

use tierwise_device::Nanos;
use tierwise_device::random::SplitMix;
use tierwise_recording::UserError;
use tierwise_work::TimeCategory;

use crate::block::storage::{RequestOwner, Storage};
use crate::kernel::arrivals::OpenLoopArrivals;
use crate::kernel::clock::{SimulationEvent, TaskId, VirtualClock};
use crate::kernel::metrics::{Metrics, TransactionMilestone};
use crate::kernel::progress_watch::ProgressWatch;
use crate::kernel::task::{Coroutine, RequestWait, TaskState};
use crate::page_cache::SimulatedPageCache;
use crate::program::Program;
use crate::stations::client_threads::ClientThreads;
use crate::stations::cores::Cores;
use crate::stations::locks::HotLocks;
use crate::stations::log::DatabaseLog;
use crate::stations::log_replica::SecondLogQueue;
use crate::stations::session_signals::SessionSignals;

/// The machine.
pub(crate) struct Machine<'a> {
    pub(crate) program: &'a Program,
    pub(crate) clock: VirtualClock,
    pub(crate) tasks: Vec<TaskState>,
    pub(crate) cores: Cores,
    pub(crate) clients: ClientThreads,
    pub(crate) storage: Storage,
    pub(crate) pages: SimulatedPageCache,
    pub(crate) log: Option<DatabaseLog<'a>>,
    pub(crate) second_log: SecondLogQueue,
    pub(crate) locks: HotLocks<'a>,
    pub(crate) signals: SessionSignals,
    /// Arrivals of transactions, in an open loop.
    pub(crate) arrivals: Option<OpenLoopArrivals>,
    /// Number of transactions at which each paced session starts its turn.
    pub(crate) due_by_work: Vec<(u64, TaskId)>,
    pub(crate) metrics: Metrics,
    pub(crate) progress: ProgressWatch,
    pub(crate) random: SplitMix,
    /// Whether sessions that serve no client leave out their writes of pages, and their processor time.
    pub(crate) without_page_writes: bool,
    /// Whether sessions repeat.
    pub(crate) steady: bool,
    /// Client sessions that have not finished.
    pub(crate) unfinished: u32,
    pub(crate) over: bool,
}

impl Machine<'_> {
    pub(crate) fn task(&mut self, task: TaskId) -> &mut TaskState {
        &mut self.tasks[task.0 as usize]
    }

    /// Sets the time category of a task from now on. Whatever happens after its reply is its client's time.
    pub(crate) fn set_activity(&mut self, task: TaskId, activity: TimeCategory) {
        let now = self.clock.now();
        let state = &mut self.tasks[task.0 as usize];
        let activity = match state.replied {
            true => TimeCategory::Client,
            false => activity,
        };
        if state.counts && state.activity != activity {
            let (part, since) = (state.activity, state.activity_since);
            self.metrics.add_time(part, since, now);
            (state.activity, state.activity_since) = (activity, now);
        }
    }

    /// Counts a client's transaction; may end the warm-up or the run.
    pub(crate) fn count_transaction(&mut self) {
        match self.metrics.count_transaction() {
            Some(TransactionMilestone::WarmUpOver) => self.begin_counting(),
            Some(TransactionMilestone::Enough) => self.over = true,
            None => {}
        }
    }

    /// Ends the warm-up.
    pub(crate) fn begin_counting(&mut self) {
        if !self.metrics.is_counting() {
            let now = self.clock.now();
            self.metrics.start(now);
            self.cores.reset_busy_time(now);
            self.storage.reset_traffic(now);
        }
    }

    /// Time of the next event. `shared`: other databases may have changed a device meanwhile.
    fn next(&mut self, shared: bool) -> Nanos {
        if shared {
            self.storage.look_at_shared();
        }
        self.clock.next().min(self.storage.next())
    }

    /// Handles the next event, if no task can continue now.
    fn handle_next_event(&mut self) {
        if self.clock.has_ready() {
            return;
        }
        let device_at = self.storage.next();
        if device_at <= self.clock.next() && device_at != Nanos::MAX {
            self.clock.pass(device_at);
            self.complete_requests();
            return;
        }
        match self.clock.next_event() {
            Some(SimulationEvent::Core(core)) => self.end_burst(core),
            Some(SimulationEvent::Wake(task)) => self.clock.wake(task),
            Some(SimulationEvent::Arrival(request)) => {
                self.storage.arrive(self.clock.now(), request)
            }
            None => {}
        }
    }

    fn complete_requests(&mut self) {
        let mut completed = self.storage.advance(self.clock.now());
        self.progress
            .note_completions(self.clock.now(), completed.len());
        for owner in completed.drain(..) {
            self.complete(owner);
        }
        self.storage.recycle(completed);
    }

    fn complete(&mut self, owner: RequestOwner) {
        match owner {
            RequestOwner::Task(task) => self.complete_for(task),
            RequestOwner::Submission(task, number) => self.complete_submission(task, number),
            RequestOwner::WriteBack(role, number) => self.complete_write_back(role, number),
        }
    }

    /// One of the requests that a task waits for is complete.
    pub(crate) fn complete_for(&mut self, id: TaskId) {
        let task = self.task(id);
        task.outstanding -= 1;
        let continues = match task.request_wait {
            RequestWait::Nothing => false,
            RequestWait::Any => true,
            RequestWait::All => task.outstanding == 0,
        };
        if continues {
            task.request_wait = RequestWait::Nothing;
            self.clock.wake(id);
        }
    }
}

/// A machine and its coroutines.
pub(crate) struct SimulationRun<'a> {
    pub(crate) machine: Rc<RefCell<Machine<'a>>>,
    pub(crate) coroutines: Vec<Coroutine<'a>>,
}

impl SimulationRun<'_> {
    /// Runs to the end.
    ///
    /// # Errors
    /// The run makes no progress.
    pub(crate) fn run(&mut self) -> Result<(), UserError> {
        while !self.advance()? {}
        Ok(())
    }

    /// Lets the next event happen, and the tasks continue that it wakes; whether the run is over.
    ///
    /// # Errors
    /// The run makes no progress.
    pub(crate) fn advance(&mut self) -> Result<bool, UserError> {
        self.machine.borrow_mut().handle_next_event();
        while let Some(task) = self.next_ready() {
            let coroutine = &mut self.coroutines[task.0 as usize];
            let polled = coroutine
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()));
            if polled.is_ready() {
                *coroutine = Box::pin(std::future::pending());
            }
        }
        let machine = &mut *self.machine.borrow_mut();
        let now = machine.clock.now();
        machine.progress.check_progress(now, &machine.tasks)?;
        Ok(machine.over)
    }

    /// The next task that can continue, unless the run is over.
    fn next_ready(&self) -> Option<TaskId> {
        let machine = &mut *self.machine.borrow_mut();
        let ready = match machine.over {
            true => None,
            false => machine.clock.next_ready(),
        };
        if ready.is_some_and(|task| machine.task(task).session.is_some()) {
            machine.progress.note_action(machine.clock.now());
        }
        ready
    }

    /// Time of the next event, where other databases may have changed a shared device.
    pub(crate) fn next_event_at(&self) -> Nanos {
        self.machine.borrow_mut().next(true)
    }
}
