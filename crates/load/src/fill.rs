//! The load phase: rows from generators, appended over several connections at once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::client::{Client, Connector};
use crate::control::Control;
use crate::derived::Derivation;
use crate::draw::{Context, Generator};
use crate::error::LoadError;
use crate::pool::cores;
use crate::random::{Random, random};
use crate::value::Value;
use crate::worker::new_runtime;
use crate::workload::{Table, Workload};

/// Rows that one connection appends at a time. Fixed, so that the rows do not depend on the connections.
const ROWS_PER_PIECE: u64 = 1_000_000;
/// Rows between two looks at the control: to tell how far the work is, and whether it has to stop.
const CONTROL_ROWS: u64 = 4096;

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
        // Whoever fails takes the rest of the work away from the others.
        if appended.is_err() {
            pieces.lock().expect("no panic under the lock").clear();
        }
        rows.fetch_add(appended?, Ordering::Relaxed);
        Ok(())
    };
    thread::scope(|scope| {
        let append = &append;
        let threads: Vec<_> = (0..connections)
            .map(|client| scope.spawn(move || append(client)))
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("a filling thread does not panic"))
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
            let table = rows.table.name.clone();
            let done = connection.append(rows).await;
            appended +=
                done.map_err(|failure| failure.in_statement(&format!("table {table}"), "append"))?;
        }
        Ok(appended)
    })
}

/// All the work, the largest piece last, where it is taken from first.
fn pieces(workload: &Workload, seed: u64, control: &Control) -> Result<Vec<Rows>, LoadError> {
    let mut pieces = Vec::new();
    for (number, table) in workload.tables.iter().enumerate() {
        let starts = (0..table.rows).step_by(ROWS_PER_PIECE as usize);
        for first in starts {
            pieces.push(Rows::new(
                table,
                number as u64,
                first,
                seed,
                control.clone(),
            )?);
        }
    }
    pieces.sort_by_key(|piece| (piece.end - piece.next) * piece.table.columns.len() as u64);
    Ok(pieces)
}

/// Consecutive rows of one table, made one at a time.
pub struct Rows {
    table: Table,
    generators: Vec<Generator>,
    /// Columns in the order in which they are drawn.
    order: Vec<usize>,
    random: Random,
    values: Vec<Value>,
    next: u64,
    end: u64,
    /// Rows that the control does not know of yet.
    untold: u64,
    control: Control,
}

impl Rows {
    fn new(
        table: &Table,
        number: u64,
        first: u64,
        seed: u64,
        control: Control,
    ) -> Result<Self, LoadError> {
        let columns = &table.columns;
        let in_table = |problem| LoadError::Workload(format!("tables.{}.{problem}", table.name));
        let named = columns
            .iter()
            .map(|one| (one.name.as_str(), &one.generator));
        let derivation =
            Derivation::new(named).map_err(|problem| in_table(format!("columns: {problem}")))?;
        let context = Context {
            seed,
            client: 0,
            clients: 1,
        };
        let position = |name: &str| columns.iter().position(|one| one.name == name);
        let generators = columns.iter().map(|column| {
            Generator::new(&column.generator, context, None, position)
                .map_err(|problem| in_table(format!("columns.{}: {problem}", column.name)))
        });
        Ok(Self {
            generators: generators.collect::<Result<_, _>>()?,
            order: derivation.in_order((0..columns.len()).collect()),
            random: random(seed, &[number, first]),
            values: vec![Value::Int(0); columns.len()],
            next: first,
            end: table.rows.min(first + ROWS_PER_PIECE),
            untold: 0,
            table: table.clone(),
            control,
        })
    }

    /// Name of the table.
    pub fn table(&self) -> &str {
        &self.table.name
    }

    /// Names of the columns, in the order of the values.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.table.columns.iter().map(|column| column.name.as_str())
    }

    /// Make the next row; `None` at the end, or when the caller wants to stop.
    pub fn next_row(&mut self) -> Option<&[Value]> {
        let is_end = self.next == self.end;
        if is_end || self.untold == CONTROL_ROWS {
            self.control.add_done(std::mem::take(&mut self.untold));
            if is_end || self.control.is_stopped() {
                return None;
            }
        }
        for &column in &self.order {
            let generator = &mut self.generators[column];
            generator.draw(&mut self.random, self.next, &mut self.values, column);
        }
        self.next += 1;
        self.untold += 1;
        Some(&self.values)
    }
}
