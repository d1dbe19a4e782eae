//! Threads of clients that start together and are measured together.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::client::{Client, Connector};
use crate::clock::{monotonic_ns, thread_cpu_ns};
use crate::draw::Context;
use crate::error::LoadError;
use crate::plan::Plan;
use crate::report::{Report, Tally};
use crate::session::Session;

/// Clients that one thread serves before another is started: few threads wake up less often.
const CLIENTS_PER_THREAD: usize = 64;
/// How long a request to stop may go unnoticed while every client waits for the server.
const STOP_POLL: Duration = Duration::from_millis(20);

/// When a run ends.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// After so many transactions, shared out equally among the clients.
    Transactions(u64),
    /// When this time is over; transactions under way are finished.
    Time(Duration),
}

/// A request to stop, which any thread can make.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ask whoever holds a copy to stop.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What one client does in a run.
#[derive(Clone, Copy)]
pub(crate) enum Share {
    Transactions(u64),
    Until(Instant),
}

impl Share {
    pub fn has_more(self, done: u64, now: Instant) -> bool {
        match self {
            Self::Transactions(count) => done < count,
            Self::Until(deadline) => now < deadline,
        }
    }
}

/// Connected clients, ready to run again and again.
pub struct Pool<C> {
    plan: Arc<Plan>,
    clients: usize,
    workers: Vec<Worker<C>>,
}

struct Worker<C> {
    sessions: Vec<(usize, Session<C>)>,
    runtime: Runtime,
}

/// What a worker brings back from a run.
struct Lap {
    started_ns: u64,
    ended_ns: u64,
    cpu_ns: u64,
    tally: Tally,
}

impl<C: Client> Pool<C> {
    /// Connect `clients` clients and prepare their statements.
    ///
    /// # Errors
    /// If there is no client, a connection is refused, a statement cannot be prepared, or `stop` is set.
    pub fn connect<K>(
        connector: &K,
        plan: Plan,
        clients: usize,
        seed: u64,
        stop: &Stop,
    ) -> Result<Self, LoadError>
    where
        K: Connector<Client = C>,
    {
        if clients == 0 {
            return Err(LoadError::Start("0 clients".to_owned()));
        }
        let plan = Arc::new(plan);
        let threads = clients.div_ceil(CLIENTS_PER_THREAD).min(cores());
        let mut workers = Vec::with_capacity(threads);
        for thread in 0..threads {
            let mut worker = Worker {
                sessions: Vec::new(),
                runtime: new_runtime()?,
            };
            for client in (thread..clients).step_by(threads) {
                if stop.is_set() {
                    return Err(LoadError::Stopped);
                }
                let context = Context {
                    seed,
                    client: client as u64,
                    clients: clients as u64,
                };
                worker.connect(connector, &plan, context)?;
            }
            workers.push(worker);
        }
        Ok(Self {
            plan,
            clients,
            workers,
        })
    }

    /// Run all clients up to `limit`.
    ///
    /// # Errors
    /// The first failure of any client, after which, as after a stop, the connections are gone.
    pub fn run(&mut self, limit: Limit, stop: &Stop) -> Result<Report, LoadError> {
        let mut workers = std::mem::take(&mut self.workers);
        if workers.is_empty() {
            return Err(LoadError::Disconnected);
        }
        let start = Barrier::new(workers.len());
        let orders = Orders {
            plan: &self.plan,
            limit,
            clients: self.clients,
            start: &start,
            stop,
            abort: &Stop::default(),
        };
        let laps: Result<Vec<Lap>, LoadError> = thread::scope(|scope| {
            let threads: Vec<_> = workers
                .iter_mut()
                .map(|worker| scope.spawn(|| worker.run(&orders)))
                .collect();
            let joined = threads
                .into_iter()
                .map(|thread| thread.join().expect("a client thread does not panic"));
            first_failure(joined.collect())
        });
        let report = summarise(laps?, &self.plan);
        self.workers = workers;
        Ok(report)
    }
}

/// What all workers of a run are told.
struct Orders<'a> {
    plan: &'a Plan,
    limit: Limit,
    clients: usize,
    start: &'a Barrier,
    /// Set by the caller.
    stop: &'a Stop,
    /// Set by a worker that failed.
    abort: &'a Stop,
}

impl Orders<'_> {
    fn share(&self, client: usize, now: Instant) -> Share {
        match self.limit {
            Limit::Time(time) => Share::Until(now + time),
            Limit::Transactions(count) => {
                let (each, rest) = (count / self.clients as u64, count % self.clients as u64);
                Share::Transactions(each + u64::from((client as u64) < rest))
            }
        }
    }

    fn check(&self) -> Result<(), LoadError> {
        if self.stop.is_set() || self.abort.is_set() {
            Err(LoadError::Stopped)
        } else {
            Ok(())
        }
    }
}

impl<C: Client> Worker<C> {
    fn connect<K>(
        &mut self,
        connector: &K,
        plan: &Arc<Plan>,
        context: Context,
    ) -> Result<(), LoadError>
    where
        K: Connector<Client = C>,
    {
        let index = context.client as usize;
        let session = self.runtime.block_on(async {
            let client = connector.connect().await;
            let client = client.map_err(|failure| LoadError::Connect {
                client: index,
                message: failure.message,
            })?;
            Session::new(client, Arc::clone(plan), context).await
        })?;
        self.sessions.push((index, session));
        Ok(())
    }

    fn run(&mut self, orders: &Orders<'_>) -> Result<Lap, LoadError> {
        let tally = Arc::new(Mutex::new(Tally::new(orders.plan.transactions.len())));
        let sessions = std::mem::take(&mut self.sessions);
        orders.start.wait();
        let cpu_before_ns = thread_cpu_ns();
        let started_ns = monotonic_ns();
        let sessions = self
            .runtime
            .block_on(run_sessions(sessions, orders, &tally));
        if sessions.is_err() {
            orders.abort.set();
        }
        self.sessions = sessions?;
        let (ended_ns, cpu_ns) = (monotonic_ns(), thread_cpu_ns() - cpu_before_ns);
        let tally = Arc::into_inner(tally).expect("all clients have ended");
        Ok(Lap {
            started_ns,
            ended_ns,
            cpu_ns,
            tally: tally.into_inner().expect("no panic under the lock"),
        })
    }
}

type Sessions<C> = Vec<(usize, Session<C>)>;

/// Run every session in a task of its own. Leaving early drops the tasks and, with them, the connections.
async fn run_sessions<C: Client>(
    sessions: Sessions<C>,
    orders: &Orders<'_>,
    tally: &Arc<Mutex<Tally>>,
) -> Result<Sessions<C>, LoadError> {
    let now = Instant::now();
    let mut running = JoinSet::new();
    for (client, mut session) in sessions {
        let (share, tally, stop) = (
            orders.share(client, now),
            Arc::clone(tally),
            orders.stop.clone(),
        );
        running.spawn(async move {
            session.run(share, &tally, &stop).await?;
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

/// All laps, or the failure that came first: the others only stopped because of it.
fn first_failure(laps: Vec<Result<Lap, LoadError>>) -> Result<Vec<Lap>, LoadError> {
    let failed =
        |lap: &&Result<Lap, LoadError>| matches!(lap, Err(error) if *error != LoadError::Stopped);
    if let Some(Err(error)) = laps.iter().find(failed) {
        return Err(error.clone());
    }
    laps.into_iter().collect()
}

fn summarise(laps: Vec<Lap>, plan: &Plan) -> Report {
    let started_ns = laps.iter().map(|lap| lap.started_ns).min().unwrap_or(0);
    let ended_ns = laps.iter().map(|lap| lap.ended_ns).max().unwrap_or(0);
    let cpu_ns = laps.iter().map(|lap| lap.cpu_ns).sum();
    let mut total = Tally::new(plan.transactions.len());
    for lap in &laps {
        total.merge(&lap.tally);
    }
    total.report(plan, started_ns, ended_ns, cpu_ns)
}

pub(crate) fn new_runtime() -> Result<Runtime, LoadError> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| LoadError::Start(error.to_string()))
}

pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
