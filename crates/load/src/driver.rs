//! Engines by name at run time: the same calls for every engine's own types.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::client::{Client, Connector};
use crate::control::{Control, Task};
use crate::error::LoadError;
use crate::plan::Plan;
use crate::pool::{Pool, cores};
use crate::rows::{self, Rows};
use crate::worker::Report;
use crate::worker::new_runtime;
use crate::workload::Workload;

/// A database of some engine. Every [`Connector`] is one.
pub trait Driver: Send + Sync {
    /// Fill the tables of a workload: [`fill`].
    ///
    /// # Errors
    /// Those of [`fill`].
    fn load(&self, workload: &Workload, seed: u64, control: &Control) -> Result<u64, LoadError>;

    /// Connect clients: [`Pool::connect`].
    ///
    /// # Errors
    /// Those of [`Pool::connect`].
    fn connect(
        self: Box<Self>,
        plan: Plan,
        clients: usize,
        seed: u64,
        control: &Control,
    ) -> Result<Box<dyn Clients>, LoadError>;
}

/// Connected clients of some engine. Every [`Pool`] is this.
pub trait Clients: Send {
    /// Run all clients: [`Pool::run`].
    ///
    /// # Errors
    /// Those of [`Pool::run`].
    fn run(&mut self, task: Task<'_>, control: &Control) -> Result<Report, LoadError>;

    /// Give every client a new connection: [`Pool::reconnect`].
    ///
    /// # Errors
    /// Those of [`Pool::connect`].
    fn reconnect(&mut self, control: &Control) -> Result<(), LoadError>;

    /// Drop the connections.
    fn close(&mut self);
}

impl<K> Driver for K
where
    K: Connector + 'static,
{
    fn load(&self, workload: &Workload, seed: u64, control: &Control) -> Result<u64, LoadError> {
        fill(self, workload, seed, control)
    }

    fn connect(
        self: Box<Self>,
        plan: Plan,
        clients: usize,
        seed: u64,
        control: &Control,
    ) -> Result<Box<dyn Clients>, LoadError> {
        Ok(Box::new(Pool::connect(
            *self, plan, clients, seed, control,
        )?))
    }
}

impl<K> Clients for Pool<K>
where
    K: Connector,
    K::Client: Client,
{
    fn run(&mut self, task: Task<'_>, control: &Control) -> Result<Report, LoadError> {
        Pool::run(self, task, control)
    }

    fn reconnect(&mut self, control: &Control) -> Result<(), LoadError> {
        Pool::reconnect(self, control)
    }

    fn close(&mut self) {
        Pool::close(self);
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
pub fn fill<K: Connector>(
    connector: &K,
    workload: &Workload,
    seed: u64,
    control: &Control,
) -> Result<u64, LoadError> {
    let pieces = Mutex::new(pieces(workload, seed, control)?);
    let connections = cores().min(pieces.lock().expect("just made").len());
    let rows = AtomicU64::new(0);
    let append = |client| {
        let appended = append_pieces(connector, client, &pieces, control);
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

fn append_pieces<K: Connector>(
    connector: &K,
    client: usize,
    pieces: &Mutex<Vec<Rows>>,
    control: &Control,
) -> Result<u64, LoadError> {
    let next = || pieces.lock().expect("no panic under the lock").pop();
    new_runtime()?.block_on(async {
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
fn pieces(workload: &Workload, seed: u64, control: &Control) -> Result<Vec<Rows>, LoadError> {
    let mut pieces = Vec::new();
    for (number, table) in workload.tables.iter().enumerate() {
        if let Some(source) = &table.source {
            let parts = rows::pieces(&table.name, source, ROWS_PER_PIECE, control)?;
            pieces.extend(parts);
        } else {
            for first in (0..table.rows).step_by(ROWS_PER_PIECE as usize) {
                let piece =
                    rows::piece(table, number as u64, first, ROWS_PER_PIECE, seed, control)?;
                pieces.push(piece);
            }
        }
    }
    pieces.sort_by_key(Rows::weight);
    Ok(pieces)
}
