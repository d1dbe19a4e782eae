//! The interface of an engine: one file per engine implements these two traits.

use std::future::Future;
use std::time::Duration;

use crate::drawn_value::DrawnValue;
use crate::error::LoadError;
use crate::sql::StatementTemplate;
use crate::table_rows::TableRows;

/// Makes connections to one database.
pub trait EngineConnector: Send + Sync {
    /// A connection.
    type Client: EngineClient;

    /// Whether calls of a client hold up their thread until the engine is done, so that each client needs a
    /// thread of its own.
    const BLOCKING: bool = false;

    /// Open one.
    fn connect(&self) -> impl Future<Output = Result<Self::Client, StatementFailure>> + Send;
}

/// One connection of one engine. All its calls are made one after the other.
pub trait EngineClient: Send + 'static {
    /// Prepare a statement; statements are numbered from 0 in the order of these calls.
    fn prepare(
        &mut self,
        statement: &StatementTemplate,
    ) -> impl Future<Output = Result<(), StatementFailure>> + Send;

    /// Run a query that gives one whole number, or null.
    fn query_number(
        &mut self,
        sql: &str,
    ) -> impl Future<Output = Result<Option<i64>, StatementFailure>> + Send;

    /// Begin a transaction.
    fn begin(&mut self) -> impl Future<Output = Result<(), StatementFailure>> + Send;

    /// Run a prepared statement and read its result to the end, adding up the column `sum` if one is named.
    fn execute(
        &mut self,
        statement: usize,
        arguments: StatementArguments<'_>,
        sum: Option<&str>,
    ) -> impl Future<Output = Result<StatementOutcome, StatementFailure>> + Send;

    /// Commit, durably.
    fn commit(&mut self) -> impl Future<Output = Result<(), StatementFailure>> + Send;

    /// Give a transaction up.
    fn rollback(&mut self) -> impl Future<Output = Result<(), StatementFailure>> + Send;

    /// Add rows to a table as fast as the engine can; returns their number.
    fn append(
        &mut self,
        rows: TableRows,
    ) -> impl Future<Output = Result<u64, StatementFailure>> + Send;

    /// From now on stop each statement that takes longer, which then fails as `capped`; `None`: no limit.
    fn set_cap(
        &mut self,
        cap: Option<Duration>,
    ) -> impl Future<Output = Result<(), StatementFailure>> + Send;

    /// Let the engine update now the counters that it would otherwise update some time after a session's
    /// work.
    fn hand_in_counts(&mut self) -> impl Future<Output = Result<(), StatementFailure>> + Send {
        async { Ok(()) }
    }
}

/// Result of a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StatementOutcome {
    /// Rows returned or changed.
    pub rows: u64,
    /// The column asked for, added up over all rows; null counts as 0, and too great a sum wraps around.
    pub sum: i64,
}

impl StatementOutcome {
    /// Add the result of another statement.
    pub(crate) fn add(&mut self, other: Self) {
        self.rows += other.rows;
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

/// An engine's error instead of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct StatementFailure {
    /// In the engine's words.
    pub message: String,
    /// The transaction was chosen to give way (deadlock, serialization) and may be tried again.
    pub retry: bool,
    /// The statement was stopped because its time was over.
    pub capped: bool,
}

impl StatementFailure {
    /// A failure that a retry does not resolve.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            retry: false,
            capped: false,
        }
    }

    /// A statement that was stopped because its time was over.
    pub fn capped(message: impl Into<String>) -> Self {
        Self {
            capped: true,
            ..Self::new(message)
        }
    }

    /// The result has no column to add up.
    pub fn no_column(name: &str) -> Self {
        Self::new(format!("the result has no column {name:?} to add up"))
    }

    pub(crate) fn in_statement(self, context: &str, sql: &str) -> LoadError {
        LoadError::Statement {
            context: context.to_owned(),
            sql: sql.to_owned(),
            message: self.message,
        }
    }
}

/// The values of a statement's parameters, in the order of [`StatementTemplate::names`].
#[derive(Clone, Copy, Debug)]
pub struct StatementArguments<'a> {
    values: &'a [DrawnValue],
    slots: &'a [usize],
}

impl<'a> StatementArguments<'a> {
    /// `slots[i]` says where the value of the i-th name stands in `values`.
    pub fn new(values: &'a [DrawnValue], slots: &'a [usize]) -> Self {
        Self { values, slots }
    }

    /// The value of the name of this index.
    pub fn get(self, index: usize) -> &'a DrawnValue {
        &self.values[self.slots[index]]
    }

    /// The values in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = &'a DrawnValue> + Clone {
        self.slots.iter().map(move |&slot| &self.values[slot])
    }
}
