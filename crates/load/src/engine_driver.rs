//! Engines by name at run time: the same calls for every engine's own types.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::thread;

use crate::client_worker::{
    ClientWorker, LoadReport, RunOrders, RunSpan, ThreadTally, new_thread_runtime,
};
use crate::engine_client::{EngineClient, EngineConnector};
use crate::error::LoadError;
use crate::run_control::{ClientTask, RunControl};
use crate::table_rows;
use crate::table_rows::TableRows;
use crate::value_generators::DrawingClient;
use crate::workload::ResolvedWorkload;
use crate::workload_plan::WorkloadPlan;

/// A database of some engine. Every [`EngineConnector`] is one.
pub trait EngineDriver: Send + Sync {
    /// Fill the tables of a workload: [`fill_tables`].
    ///
    /// # Errors
    /// Those of [`fill_tables`].
    fn load(
        &self,
        workload: &ResolvedWorkload,
        seed: u64,
        control: &RunControl,
    ) -> Result<u64, LoadError>;

    /// Connect clients: [`ClientPool::connect`].
    ///
    /// # Errors
    /// Those of [`ClientPool::connect`].
    fn connect(
        self: Box<Self>,
        plan: WorkloadPlan,
        clients: usize,
        seed: u64,
        control: &RunControl,
    ) -> Result<Box<dyn ConnectedClients>, LoadError>;
}

/// Connected clients of some engine. Every [`ClientPool`] is this.
pub trait ConnectedClients: Send {
    /// Run all clients: [`ClientPool::run`].
    ///
    /// # Errors
    /// Those of [`ClientPool::run`].
    fn run(&mut self, task: ClientTask<'_>, control: &RunControl) -> Result<LoadReport, LoadError>;

    /// Give every client a new connection: [`ClientPool::reconnect`].
    ///
    /// # Errors
    /// Those of [`ClientPool::connect`].
    fn reconnect(&mut self, control: &RunControl) -> Result<(), LoadError>;

    /// Drop the connections.
    fn close(&mut self);
}

impl<K> EngineDriver for K
where
    K: EngineConnector + 'static,
{
    fn load(
        &self,
        workload: &ResolvedWorkload,
        seed: u64,
        control: &RunControl,
    ) -> Result<u64, LoadError> {
        fill_tables(self, workload, seed, control)
    }

    fn connect(
        self: Box<Self>,
        plan: WorkloadPlan,
        clients: usize,
        seed: u64,
        control: &RunControl,
    ) -> Result<Box<dyn ConnectedClients>, LoadError> {
        Ok(Box::new(ClientPool::connect(
            *self, plan, clients, seed, control,
        )?))
    }
}

impl<K> ConnectedClients for ClientPool<K>
where
    K: EngineConnector,
    K::Client: EngineClient,
{
    fn run(&mut self, task: ClientTask<'_>, control: &RunControl) -> Result<LoadReport, LoadError> {
        ClientPool::run(self, task, control)
    }

    fn reconnect(&mut self, control: &RunControl) -> Result<(), LoadError> {
        ClientPool::reconnect(self, control)
    }

    fn close(&mut self) {
        ClientPool::close(self);
    }
}

// The load phase: rows from generators, appended over several connections at once.

/// Name of every thread that fills tables; it tells a recording which threads call an engine that is a
/// library.
const FILLING_THREAD: &str = "tierwise-load";

/// Rows that one connection appends at a time. Fixed, so that the rows do not depend on the connections.
const ROWS_PER_PIECE: u64 = 1_000_000;

/// Fill the tables of a workload; returns the number of rows.
///
/// The rows depend on the workload and the seed alone.
///
/// # Errors
/// If a generator is impossible, no connection can be had, or the engine refuses rows.
pub fn fill_tables<K: EngineConnector>(
    connector: &K,
    workload: &ResolvedWorkload,
    seed: u64,
    control: &RunControl,
) -> Result<u64, LoadError> {
    let pieces = Mutex::new(table_pieces(workload, seed, control)?);
    let connections = processor_count().min(pieces.lock().expect("just made").len());
    let rows = AtomicU64::new(0);
    let append = |client| {
        let appended = append_table_pieces(connector, client, &pieces, control);
        // A thread that fails takes the rest of the work away from the others.
        if appended.is_err() {
            pieces.lock().expect("no panic under the lock").clear();
        }
        rows.fetch_add(appended?, Ordering::Relaxed);
        Ok(())
    };
    thread::scope(|scope| {
        let append = &append;
        let threads: Vec<_> = (0..connections)
            .map(|client| {
                thread::Builder::new()
                    .name(FILLING_THREAD.to_owned())
                    .spawn_scoped(scope, move || append(client))
                    .map_err(|error| LoadError::Start(error.to_string()))
            })
            .collect();
        // Those that started fill all; without any, nobody does.
        let (started, failed): (Vec<_>, Vec<_>) = threads.into_iter().partition(Result::is_ok);
        if started.is_empty() {
            failed.into_iter().try_for_each(|failed| failed.map(drop))?;
        }
        let mut started = started.into_iter().flatten();
        started.try_for_each(|thread| thread.join().expect("a filling thread does not panic"))
    })?;
    if control.is_stopped() {
        Err(LoadError::Stopped)
    } else {
        Ok(rows.into_inner())
    }
}

fn append_table_pieces<K: EngineConnector>(
    connector: &K,
    client: usize,
    pieces: &Mutex<Vec<TableRows>>,
    control: &RunControl,
) -> Result<u64, LoadError> {
    let next = || pieces.lock().expect("no panic under the lock").pop();
    new_thread_runtime()?.block_on(async {
        let connected = connector.connect().await;
        let mut connection = connected.map_err(|failure| LoadError::Connect {
            client,
            message: failure.message,
        })?;
        let mut appended = 0;
        while let Some(rows) = next().filter(|_| !control.is_stopped()) {
            let table = rows.table().to_owned();
            let done = connection.append(rows).await;
            appended +=
                done.map_err(|failure| failure.in_statement(&format!("table {table}"), "append"))?;
        }
        Ok(appended)
    })
}

/// All the work, the largest piece last, because pieces are taken from the end.
fn table_pieces(
    workload: &ResolvedWorkload,
    seed: u64,
    control: &RunControl,
) -> Result<Vec<TableRows>, LoadError> {
    let mut pieces = Vec::new();
    for (number, table) in workload.tables.iter().enumerate() {
        if let Some(source) = &table.source {
            let parts = table_rows::split_table(&table.name, source, ROWS_PER_PIECE, control)?;
            pieces.extend(parts);
        } else {
            for first in (0..table.rows).step_by(ROWS_PER_PIECE as usize) {
                let piece = table_rows::table_piece(
                    table,
                    number as u64,
                    first,
                    ROWS_PER_PIECE,
                    seed,
                    control,
                )?;
                pieces.push(piece);
            }
        }
    }
    pieces.sort_by_key(TableRows::weight);
    Ok(pieces)
}

// Threads of clients that start together and are measured together.

/// Clients that one thread serves before another is started: a small number of threads wakes up less often.
const CLIENTS_PER_THREAD: usize = 64;

/// Name of every thread that runs clients; wait sampling finds them by it among an engine's own threads.
const CLIENT_THREAD: &str = "tierwise-client";

/// Connected clients, ready to run again and again.
pub struct ClientPool<K: EngineConnector> {
    connector: K,
    plan: Arc<WorkloadPlan>,
    clients: usize,
    seed: u64,
    runs: u64,
    workers: Vec<ClientWorker<K::Client>>,
}

impl<K: EngineConnector> ClientPool<K> {
    /// Connect `clients` clients and prepare their statements.
    ///
    /// # Errors
    /// If there is no client, a connection is refused, a statement cannot be prepared, or `control` is
    /// stopped.
    pub fn connect(
        connector: K,
        plan: WorkloadPlan,
        clients: usize,
        seed: u64,
        control: &RunControl,
    ) -> Result<Self, LoadError> {
        if clients == 0 {
            return Err(LoadError::Start("0 clients".to_owned()));
        }
        // The load phase is over: the measured run has the memory to itself.
        tierwise_tpch::release_text_pool();
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
    /// Those of [`ClientPool::connect`], after which the clients have no connections.
    pub fn reconnect(&mut self, control: &RunControl) -> Result<(), LoadError> {
        self.close();
        let threads = if K::BLOCKING {
            self.clients
        } else {
            self.clients
                .div_ceil(CLIENTS_PER_THREAD)
                .min(processor_count())
        };
        let mut workers = Vec::with_capacity(threads);
        for thread in 0..threads {
            let mut worker = ClientWorker::new()?;
            for client in (thread..self.clients).step_by(threads) {
                if control.is_stopped() {
                    return Err(LoadError::Stopped);
                }
                let context = DrawingClient {
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
    pub fn run(
        &mut self,
        task: ClientTask<'_>,
        control: &RunControl,
    ) -> Result<LoadReport, LoadError> {
        let only = task.transaction.map(|name| self.plan.number_of(name));
        let only = only.transpose()?;
        let mut workers = std::mem::take(&mut self.workers);
        if workers.is_empty() {
            return Err(LoadError::Disconnected);
        }
        let orders = RunOrders {
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
        let (tally, span) = merge_reports(parts?);
        self.workers = workers;
        Ok(LoadReport::new(tally, &self.plan, only, span))
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

fn merge_reports(parts: Vec<(ThreadTally, RunSpan)>) -> (ThreadTally, RunSpan) {
    let merged = parts
        .into_iter()
        .reduce(|(mut tally, mut span), (other, ran)| {
            tally.merge(&other);
            span.merge(ran);
            (tally, span)
        });
    merged.expect("there is at least one worker")
}

pub(crate) fn processor_count() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
