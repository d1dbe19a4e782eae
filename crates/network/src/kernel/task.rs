//! Tasks: coroutines on virtual time. A task that waits gives up its core and is polled again when it is woken.

use std::cell::{RefCell, RefMut};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tierwise_device::Nanos;
use tierwise_recording::Role;
use tierwise_work::{ReadReuse, TimeCategory};

use crate::kernel::clock::{CoreId, TaskId};
use crate::kernel::machine::Machine;
use crate::program::Program;
use crate::stations::client_threads::ClientId;
use crate::stations::cores::CoreClaimant;
use crate::stations::locks::LockKeyId;

/// A coroutine.
pub(crate) type Coroutine<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A task's access to its machine. The machine is never borrowed while a task waits.
pub(crate) struct TaskHandle<'a> {
    pub(crate) id: TaskId,
    pub(crate) program: &'a Program,
    pub(crate) machine: Rc<RefCell<Machine<'a>>>,
}

/// Which asynchronous requests a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AsyncRequestWait {
    Nothing,
    All,
    /// Those that overlap a range of a role: first sector and end.
    Range(Role, u64, u64),
}

/// When a task that waits for its requests continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestWait {
    Nothing,
    /// Once any of them is complete.
    Any,
    /// Once all are.
    All,
}

/// An asynchronous request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubmittedRequest {
    pub(crate) number: u32,
    pub(crate) role: Role,
    pub(crate) sector: u64,
    pub(crate) sectors: u32,
    /// Requests to the device that are not complete.
    pub(crate) outstanding: u32,
}

/// The state of a task that the stations read and write.
#[derive(Debug)]
pub(crate) struct TaskState {
    /// Its session in the program; none for a service of the machine.
    pub(crate) session: Option<u32>,
    /// Which copy of the recorded sessions it belongs to.
    pub(crate) copy: u32,
    /// Whether it is a client's session, which metrics measure.
    pub(crate) counts: bool,
    pub(crate) finished: bool,
    pub(crate) activity: TimeCategory,
    pub(crate) activity_since: Nanos,
    /// Number of times that its session was repeated.
    pub(crate) cycle: u32,
    pub(crate) transaction_began: Nanos,
    /// Whether its client has the reply and has not sent the next request.
    pub(crate) replied: bool,
    /// From its last reply of a transaction until its server's thread runs for the next one.
    pub(crate) between_transactions: bool,
    /// Commits until its transaction ends, and those done; counted where the log's leader waits for others.
    pub(crate) commits_ahead: u32,
    pub(crate) commits_done: u32,
    /// The core it is on.
    pub(crate) core: Option<CoreId>,
    /// The core of each thread's last run.
    pub(crate) last_cores: [Option<CoreId>; 2],
    /// Which of its threads runs or ran last.
    pub(crate) thread: CoreClaimant,
    /// Processor time that it still needs.
    pub(crate) pending_ns: Nanos,
    /// Its client's thread.
    pub(crate) client: Option<ClientId>,
    /// End of the log after its last append.
    pub(crate) appended: u64,
    /// Keys of hot locks that it holds.
    pub(crate) held_keys: Vec<LockKeyId>,
    /// Requests that it sent and waits for.
    pub(crate) outstanding: u32,
    pub(crate) request_wait: RequestWait,
    /// Its asynchronous requests.
    pub(crate) submitted: Vec<SubmittedRequest>,
    pub(crate) submissions: u32,
    pub(crate) async_wait: AsyncRequestWait,
    /// Reuse distances of its next reads.
    pub(crate) reuse: ReadReuse,
    /// Processor time that reads answered by more memory spare it, from its next steps on: a part was spent before the
    /// read.
    pub(crate) spared_ns: Nanos,
    /// Its last read of evicted pages: role, end, and the end of what was read ahead.
    pub(crate) evicted_read: Option<(Role, u64, u64)>,
}

impl TaskState {
    pub(crate) fn new(session: Option<u32>, copy: u32, counts: bool) -> Self {
        Self {
            session,
            copy,
            counts,
            finished: false,
            activity: TimeCategory::Other,
            activity_since: 0,
            cycle: 0,
            transaction_began: 0,
            replied: false,
            between_transactions: true,
            commits_ahead: 0,
            commits_done: 0,
            core: None,
            last_cores: [None; 2],
            thread: CoreClaimant::Server,
            pending_ns: 0,
            client: None,
            appended: 0,
            held_keys: Vec::with_capacity(8),
            outstanding: 0,
            request_wait: RequestWait::Nothing,
            submitted: Vec::new(),
            submissions: 0,
            async_wait: AsyncRequestWait::Nothing,
            reuse: ReadReuse::default(),
            spared_ns: 0,
            evicted_read: None,
        }
    }
}

impl TaskState {
    /// What is left of processor time after what reads spared it.
    pub(crate) fn spend(&mut self, time_ns: Nanos) -> Nanos {
        let spared_ns = self.spared_ns.min(time_ns);
        self.spared_ns -= spared_ns;
        time_ns - spared_ns
    }
}

/// A wait for a wake-up: it ends when the task is polled again. Whoever wakes a task does so once for each wait.
#[must_use = "a task waits by awaiting it"]
pub(crate) struct WakeUpWait(bool);

impl Future for WakeUpWait {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        match std::mem::replace(&mut self.0, true) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

impl<'a> TaskHandle<'a> {
    pub(crate) fn new(
        machine: &Rc<RefCell<Machine<'a>>>,
        program: &'a Program,
        id: TaskId,
    ) -> Self {
        Self {
            id,
            program,
            machine: Rc::clone(machine),
        }
    }

    /// The machine, until the end of the statement.
    pub(crate) fn machine(&self) -> RefMut<'_, Machine<'a>> {
        self.machine.borrow_mut()
    }

    /// Changes the task's own state.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut TaskState) -> T) -> T {
        change(self.machine().task(self.id))
    }

    /// Waits until the task is woken; it keeps its core.
    pub(crate) fn suspend(&self) -> WakeUpWait {
        WakeUpWait(false)
    }

    /// Leaves the core, and waits until the task is woken.
    pub(crate) fn block(&self, activity: TimeCategory) -> WakeUpWait {
        let mut machine = self.machine();
        machine.set_activity(self.id, activity);
        machine.leave_core(self.id);
        self.suspend()
    }

    /// Sleeps for a time.
    pub(crate) fn sleep(&self, time_ns: Nanos, activity: TimeCategory) -> WakeUpWait {
        self.machine().clock.wake_after(time_ns, self.id);
        self.block(activity)
    }

    /// Sleeps until a time, if it is not past.
    pub(crate) fn sleep_until(&self, at: Nanos, activity: TimeCategory) -> WakeUpWait {
        let now = self.machine().clock.now();
        self.sleep(at.saturating_sub(now), activity)
    }

    /// Waits for its requests, any or all.
    pub(crate) async fn await_requests(&self, wait: RequestWait, activity: TimeCategory) {
        if self.change(|task| task.outstanding) > 0 {
            self.change(|task| task.request_wait = wait);
            self.block(activity).await;
        }
    }
}
