//! One thread's clients: connected, run and measured together.

use std::collections::BTreeMap;
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::time::{Duration, Instant};

use serde::Serialize;
use tierwise_latency::{LatencyHistogram, LatencyPercentiles};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::client_session::{ClientReport, ClientSession};
use crate::engine_client::{EngineClient, EngineConnector, StatementOutcome};
use crate::error::LoadError;
use crate::run_control::{ClientTask, RunControl, RunLimit};
use crate::value_generators::DrawingClient;
use crate::workload_plan::WorkloadPlan;

/// How long a request to stop may go unnoticed while every client waits for the server.
const STOP_POLL: Duration = Duration::from_millis(20);

/// The task of one client in a run.
#[derive(Clone, Copy)]
pub(crate) enum ClientShare {
    Transactions(u64),
    Until(Instant),
}

impl ClientShare {
    pub fn has_more(self, done: u64, now: Instant) -> bool {
        match self {
            Self::Transactions(count) => done < count,
            Self::Until(deadline) => now < deadline,
        }
    }
}

/// Each with the number of its client.
type NumberedSessions<C> = Vec<(usize, ClientSession<C>)>;

/// Clients that share a thread.
pub(crate) struct ClientWorker<C> {
    sessions: NumberedSessions<C>,
    runtime: Runtime,
}

/// State that all workers of a run share.
pub(crate) struct RunOrders<'a> {
    pub task: ClientTask<'a>,
    /// The number of the task's transaction among all that the plan has.
    pub only: Option<usize>,
    pub transactions: usize,
    /// The number of the run, from 0.
    pub run: u64,
    pub clients: usize,
    /// Whether all threads were started; set when that is known.
    pub started: &'a OnceLock<bool>,
    /// Reached by each thread before any client begins.
    pub ready: &'a Barrier,
    /// Stopped by the caller, and by a worker that failed.
    pub control: &'a RunControl,
}

impl RunOrders<'_> {
    fn part(&self, client: usize, now: Instant) -> ClientReport {
        ClientReport {
            share: self.share(client, now),
            only: self.only,
            cap: self.task.cap,
            run: self.run,
        }
    }

    fn share(&self, client: usize, now: Instant) -> ClientShare {
        match self.task.limit {
            RunLimit::Time(time) => ClientShare::Until(now + time),
            RunLimit::Transactions(count) => {
                let (each, rest) = (count / self.clients as u64, count % self.clients as u64);
                ClientShare::Transactions(each + u64::from((client as u64) < rest))
            }
        }
    }

    fn check(&self) -> Result<(), LoadError> {
        if self.control.is_stopped() {
            Err(LoadError::Stopped)
        } else {
            Ok(())
        }
    }
}

impl<C: EngineClient> ClientWorker<C> {
    pub fn new() -> Result<Self, LoadError> {
        Ok(Self {
            sessions: Vec::new(),
            runtime: new_thread_runtime()?,
        })
    }

    /// Connect one client more.
    pub fn connect<K>(
        &mut self,
        connector: &K,
        plan: &Arc<WorkloadPlan>,
        context: DrawingClient,
    ) -> Result<(), LoadError>
    where
        K: EngineConnector<Client = C>,
    {
        let index = context.client as usize;
        let session = self.runtime.block_on(async {
            let client = connector.connect().await;
            let client = client.map_err(|failure| LoadError::Connect {
                client: index,
                message: failure.message,
            })?;
            ClientSession::new(client, Arc::clone(plan), context).await
        })?;
        self.sessions.push((index, session));
        Ok(())
    }

    /// Run all its clients once every worker is ready. After a failure it has no clients left.
    pub fn run(&mut self, orders: &RunOrders<'_>) -> Result<(ThreadTally, RunSpan), LoadError> {
        let tally = Arc::new(Mutex::new(ThreadTally::new(orders.transactions)));
        let sessions = std::mem::take(&mut self.sessions);
        if !orders.started.wait() {
            return Err(LoadError::Stopped);
        }
        orders.ready.wait();
        let cpu_before_ns = thread_cpu_ns();
        let started_ns = monotonic_ns();
        let sessions = self
            .runtime
            .block_on(run_sessions(sessions, orders, &tally));
        if sessions.is_err() {
            orders.control.stop();
        }
        self.sessions = sessions?;
        let span = RunSpan {
            started_ns,
            ended_ns: monotonic_ns(),
            cpu_ns: thread_cpu_ns() - cpu_before_ns,
        };
        self.runtime.block_on(async {
            for (_, session) in &mut self.sessions {
                session.hand_in_counts().await?;
            }
            Ok::<_, LoadError>(())
        })?;
        let tally = Arc::into_inner(tally).expect("all clients have ended");
        Ok((tally.into_inner().expect("no panic under the lock"), span))
    }
}

/// Run every session in a task of its own. Leaving early drops the tasks and, with them, the connections.
async fn run_sessions<C: EngineClient>(
    sessions: NumberedSessions<C>,
    orders: &RunOrders<'_>,
    tally: &Arc<Mutex<ThreadTally>>,
) -> Result<NumberedSessions<C>, LoadError> {
    let now = Instant::now();
    let mut running = JoinSet::new();
    for (client, mut session) in sessions {
        let (part, tally, control) = (
            orders.part(client, now),
            Arc::clone(tally),
            orders.control.clone(),
        );
        running.spawn(async move {
            session.run(part, &tally, &control).await?;
            drop(tally);
            Ok((client, session))
        });
    }
    let mut finished = Vec::with_capacity(running.len());
    let mut poll = tokio::time::interval(STOP_POLL);
    while !running.is_empty() {
        tokio::select! {
            Some(ended) = running.join_next() => finished.push(ended.expect("a client does not panic")?),
            _ = poll.tick() => orders.check()?,
        }
    }
    orders.check().map(|()| finished)
}

/// A runtime on the calling thread, so that CPU time is this thread's alone.
pub(crate) fn new_thread_runtime() -> Result<Runtime, LoadError> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| LoadError::Start(error.to_string()))
}

// The clocks of this machine.

/// Time since an arbitrary moment that never jumps, in nanoseconds: the clock that traces use too.
pub(crate) fn monotonic_ns() -> u64 {
    read_clock_ns(libc::CLOCK_MONOTONIC)
}

/// CPU time that the calling thread has used, in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    read_clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read_clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for one timespec, and both clocks exist on every Linux.
    let status = unsafe { libc::clock_gettime(clock, &mut time) };
    assert_eq!(status, 0, "Linux has the clock {clock}");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

// Counts of clients while they run.

/// Counts of a thread's clients so far.
pub(crate) struct ThreadTally {
    pub by_transaction: Vec<LatencyHistogram>,
    pub errors: u64,
    pub retries: u64,
    /// Rows of committed transactions, and what these add to the checksum.
    pub work: StatementOutcome,
    pub capped: bool,
}

impl ThreadTally {
    pub fn new(transactions: usize) -> Self {
        Self {
            by_transaction: vec![LatencyHistogram::new(); transactions],
            errors: 0,
            retries: 0,
            work: StatementOutcome::default(),
            capped: false,
        }
    }

    /// Count a transaction that committed at one of its `attempts`.
    pub fn add(
        &mut self,
        transaction: usize,
        attempts: u64,
        work: StatementOutcome,
        latency: Duration,
    ) {
        self.retries += attempts - 1;
        self.work.add(work);
        self.by_transaction[transaction].record(latency.as_nanos() as u64);
    }

    pub fn merge(&mut self, other: &Self) {
        self.errors += other.errors;
        self.retries += other.retries;
        self.work.add(other.work);
        self.capped |= other.capped;
        for (mine, theirs) in self.by_transaction.iter_mut().zip(&other.by_transaction) {
            mine.merge(theirs);
        }
    }
}

// The report of a run.

/// One run of a pool of clients.
#[derive(Clone, Debug, Serialize)]
pub struct LoadReport {
    /// From the start of the first transaction to the end of the last, in seconds.
    pub elapsed_s: f64,
    /// Start on the monotonic clock, in nanoseconds.
    pub started_ns: u64,
    /// End on the monotonic clock, in nanoseconds.
    pub ended_ns: u64,
    /// Transactions that committed.
    pub transactions: u64,
    /// Transactions given up after too many attempts.
    pub errors: u64,
    /// Retries of transactions that gave way (deadlock, serialization).
    pub retries: u64,
    /// Rows that statements of committed transactions returned or changed.
    pub rows: u64,
    /// The sum over committed transactions, if the workload defines one.
    pub checksum: Option<i64>,
    /// The time was over before all was done.
    pub capped: bool,
    /// CPU time of the client threads, in seconds.
    pub client_cpu_s: f64,
    /// Latency of committed transactions by name, and of `all`; retries are part of it.
    pub latency: BTreeMap<String, LatencyPercentiles>,
    /// The same distributions whole, in nanoseconds: HDR histogram V2 in base64.
    pub histograms: BTreeMap<String, String>,
}

/// When a run took place, and the CPU time of its threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunSpan {
    pub started_ns: u64,
    pub ended_ns: u64,
    pub cpu_ns: u64,
}

impl RunSpan {
    /// Merge the span of another thread.
    pub fn merge(&mut self, other: Self) {
        self.started_ns = self.started_ns.min(other.started_ns);
        self.ended_ns = self.ended_ns.max(other.ended_ns);
        self.cpu_ns += other.cpu_ns;
    }
}

impl LoadReport {
    /// Sum up the counts; `only` is the transaction that the run was restricted to.
    pub(crate) fn new(
        tally: ThreadTally,
        plan: &WorkloadPlan,
        only: Option<usize>,
        span: RunSpan,
    ) -> Self {
        let mut all = LatencyHistogram::new();
        for times in &tally.by_transaction {
            all.merge(times);
        }
        let transactions = all.count();
        let names = plan
            .transactions
            .iter()
            .map(|transaction| transaction.name.clone());
        let named: Vec<_> = names
            .zip(tally.by_transaction)
            .chain([("all".to_owned(), all)])
            .collect();
        Self {
            elapsed_s: (span.ended_ns - span.started_ns) as f64 / 1e9,
            started_ns: span.started_ns,
            ended_ns: span.ended_ns,
            transactions,
            errors: tally.errors,
            retries: tally.retries,
            rows: tally.work.rows,
            checksum: plan.has_sum(only).then_some(tally.work.sum),
            capped: tally.capped,
            client_cpu_s: span.cpu_ns as f64 / 1e9,
            latency: named
                .iter()
                .filter_map(|(name, one)| Some((name.clone(), one.summary()?)))
                .collect(),
            histograms: named
                .iter()
                .filter(|(_, one)| one.count() > 0)
                .map(|(name, one)| (name.clone(), one.encoded()))
                .collect(),
        }
    }
}
