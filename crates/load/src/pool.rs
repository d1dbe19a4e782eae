//! Threads of clients that start together and are measured together.

use std::sync::{Arc, Barrier, OnceLock};
use std::thread;

use crate::client::Connector;
use crate::control::{Control, Task};
use crate::draw::Context;
use crate::error::LoadError;
use crate::plan::Plan;
use crate::worker::{Orders, Tally, Worker};
use crate::worker::{Report, Span};

/// Clients that one thread serves before another is started: a small number of threads wakes up less often.
const CLIENTS_PER_THREAD: usize = 64;

/// Name of every thread that runs clients; wait sampling finds them by it among an engine's own threads.
const CLIENT_THREAD: &str = "tierwise-client";

/// Connected clients, ready to run again and again.
pub struct Pool<K: Connector> {
    connector: K,
    plan: Arc<Plan>,
    clients: usize,
    seed: u64,
    runs: u64,
    workers: Vec<Worker<K::Client>>,
}

impl<K: Connector> Pool<K> {
    /// Connect `clients` clients and prepare their statements.
    ///
    /// # Errors
    /// If there is no client, a connection is refused, a statement cannot be prepared, or `control` is
    /// stopped.
    pub fn connect(
        connector: K,
        plan: Plan,
        clients: usize,
        seed: u64,
        control: &Control,
    ) -> Result<Self, LoadError> {
        if clients == 0 {
            return Err(LoadError::Start("0 clients".to_owned()));
        }
        // The load phase is over: the measured run has the memory to itself.
        tierwise_tpch::release_text();
        let mut pool = Self {
            connector,
            plan: Arc::new(plan),
            clients,
            seed,
            runs: 0,
            workers: Vec::new(),
        };
        pool.reconnect(control)?;
        Ok(pool)
    }

    /// Give every client a new connection. Its sequences begin as those of a new client do.
    ///
    /// # Errors
    /// Those of [`Pool::connect`], after which the clients have no connections.
    pub fn reconnect(&mut self, control: &Control) -> Result<(), LoadError> {
        self.close();
        let threads = if K::BLOCKING {
            self.clients
        } else {
            self.clients.div_ceil(CLIENTS_PER_THREAD).min(cores())
        };
        let mut workers = Vec::with_capacity(threads);
        for thread in 0..threads {
            let mut worker = Worker::new()?;
            for client in (thread..self.clients).step_by(threads) {
                if control.is_stopped() {
                    return Err(LoadError::Stopped);
                }
                let context = Context {
                    seed: self.seed,
                    client: client as u64,
                    clients: self.clients as u64,
                };
                worker.connect(&self.connector, &self.plan, context)?;
            }
            workers.push(worker);
        }
        self.workers = workers;
        Ok(())
    }

    /// Drop the connections.
    pub fn close(&mut self) {
        self.workers.clear();
    }

    /// Run all clients until their task is done.
    ///
    /// # Errors
    /// The first failure of any client, or a thread that the system does not start. After either, as after a stop,
    /// the connections are gone.
    pub fn run(&mut self, task: Task<'_>, control: &Control) -> Result<Report, LoadError> {
        let only = task.transaction.map(|name| self.plan.number_of(name));
        let only = only.transpose()?;
        let mut workers = std::mem::take(&mut self.workers);
        if workers.is_empty() {
            return Err(LoadError::Disconnected);
        }
        let orders = Orders {
            task,
            only,
            transactions: self.plan.transactions.len(),
            run: self.runs,
            clients: self.clients,
            started: &OnceLock::new(),
            ready: &Barrier::new(workers.len()),
            control: &control.child(),
        };
        self.runs += 1;
        let parts: Result<Vec<_>, LoadError> = thread::scope(|scope| {
            let started = workers.iter_mut().map(|worker| {
                thread::Builder::new()
                    .name(CLIENT_THREAD.to_owned())
                    .spawn_scoped(scope, || worker.run(&orders))
                    .map_err(|error| LoadError::Start(error.to_string()))
            });
            let threads: Result<Vec<_>, _> = started.collect();
            orders.started.get_or_init(|| threads.is_ok());
            let joined = threads?
                .into_iter()
                .map(|thread| thread.join().expect("a client thread does not panic"));
            first_failure(joined.collect())
        });
        let (tally, span) = merge(parts?);
        self.workers = workers;
        Ok(Report::new(tally, &self.plan, only, span))
    }
}

/// All parts, or the earliest failure: the others only stopped because of it.
fn first_failure<T>(parts: Vec<Result<T, LoadError>>) -> Result<Vec<T>, LoadError> {
    let failed =
        |part: &&Result<T, LoadError>| matches!(part, Err(error) if *error != LoadError::Stopped);
    if let Some(Err(error)) = parts.iter().find(failed) {
        return Err(error.clone());
    }
    parts.into_iter().collect()
}

fn merge(parts: Vec<(Tally, Span)>) -> (Tally, Span) {
    let merged = parts
        .into_iter()
        .reduce(|(mut tally, mut span), (other, ran)| {
            tally.merge(&other);
            span.merge(ran);
            (tally, span)
        });
    merged.expect("there is at least one worker")
}

pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
