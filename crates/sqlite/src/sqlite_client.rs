//! Clients of a database: one connection each, on a thread of its own, since calls block.

use std::time::Duration;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Rows as Returned, Statement, ToSql};
use tierwise_load::sql::StatementTemplate;
use tierwise_load::{
    DrawnValue, EngineClient, EngineConnector, LoadError, StatementArguments, StatementFailure,
    StatementOutcome, TableRows,
};

use crate::sqlite_connection::{
    DatabaseAddress, SqliteConnection, StatementTimeLimit, failure_of_sqlite,
};

/// Rows appended in one transaction: a flush each is little, and others wait for the lock only a moment.
const ROWS_PER_TRANSACTION: usize = 10_000;

/// Opens clients of one database.
pub struct SqliteConnector(DatabaseAddress);

impl SqliteConnector {
    /// Read a [`DatabaseAddress`] from JSON.
    ///
    /// # Errors
    /// Those of [`DatabaseAddress::parse`].
    pub fn new(address: &str) -> Result<Self, LoadError> {
        DatabaseAddress::parse(address).map(Self)
    }
}

impl EngineConnector for SqliteConnector {
    type Client = SqliteClient;

    const BLOCKING: bool = true;

    async fn connect(&self) -> Result<SqliteClient, StatementFailure> {
        Ok(SqliteClient {
            session: SqliteConnection::open(&self.0)?,
            statements: Vec::new(),
            cap: StatementTimeLimit::none(),
            gave_way: false,
        })
    }
}

/// One connection.
pub struct SqliteClient {
    session: SqliteConnection,
    statements: Vec<String>,
    cap: StatementTimeLimit,
    /// The last transaction had to give way. The next takes the write lock first: a transaction that asks for
    /// it only after it has read can lose its turn for ever.
    gave_way: bool,
}

impl SqliteClient {
    fn failure(&self, error: &rusqlite::Error) -> StatementFailure {
        failure_of_sqlite(error, self.session.vfs)
    }

    fn simple(&self, sql: &str) -> Result<(), StatementFailure> {
        let mut statement = self.prepared(sql)?;
        statement
            .raw_execute()
            .map_err(|error| self.failure(&error))?;
        Ok(())
    }

    fn prepared(&self, sql: &str) -> Result<rusqlite::CachedStatement<'_>, StatementFailure> {
        let prepared = self.session.connection.prepare_cached(sql);
        prepared.map_err(|error| self.failure(&error))
    }

    fn hand_in(&self) {
        if self.session.connection.is_autocommit() {
            self.session.hand_in();
        }
    }

    fn append_some(&self, insert: &str, rows: &mut TableRows) -> Result<u64, StatementFailure> {
        let mut statement = self.prepared(insert)?;
        self.simple("BEGIN IMMEDIATE")?;
        let mut appended = 0;
        while appended < ROWS_PER_TRANSACTION
            && let Some(row) = rows.next_row()
        {
            bind_parameters(&mut statement, row.iter()).map_err(|error| self.failure(&error))?;
            statement
                .raw_execute()
                .map_err(|error| self.failure(&error))?;
            appended += 1;
        }
        self.simple("COMMIT")?;
        Ok(appended as u64)
    }
}

impl EngineClient for SqliteClient {
    async fn prepare(&mut self, statement: &StatementTemplate) -> Result<(), StatementFailure> {
        self.statements
            .push(statement.render(|index| format!("?{}", index + 1)));
        // Besides the statements, those that begin and end transactions are kept prepared.
        let kept = self.statements.len() + 4;
        self.session
            .connection
            .set_prepared_statement_cache_capacity(kept);
        self.prepared(&self.statements[self.statements.len() - 1])?;
        Ok(())
    }

    async fn query_number(&mut self, sql: &str) -> Result<Option<i64>, StatementFailure> {
        let asked = self.session.connection.query_row(sql, [], |row| row.get(0));
        asked.map_err(|error| self.failure(&error))
    }

    async fn begin(&mut self) -> Result<(), StatementFailure> {
        let gave_way = std::mem::take(&mut self.gave_way);
        self.simple(if gave_way { "BEGIN IMMEDIATE" } else { "BEGIN" })
    }

    async fn execute(
        &mut self,
        statement: usize,
        arguments: StatementArguments<'_>,
        sum: Option<&str>,
    ) -> Result<StatementOutcome, StatementFailure> {
        let mut prepared = self.prepared(&self.statements[statement])?;
        let column = sum.map(|name| {
            prepared
                .column_index(name)
                .map_err(|_| StatementFailure::no_column(name))
        });
        let column = column.transpose()?;
        self.cap.begin();
        let changes_before = self.session.connection.total_changes();
        let outcome = bind_parameters(&mut prepared, arguments.iter()).and_then(|()| {
            let returns_rows = prepared.column_count() > 0;
            let mut outcome = read_rows(&mut prepared.raw_query(), column)?;
            if !returns_rows && self.session.connection.total_changes() > changes_before {
                outcome.rows = self.session.connection.changes();
            }
            Ok(outcome)
        });
        self.hand_in();
        outcome.map_err(|error| self.failure(&error))
    }

    async fn commit(&mut self) -> Result<(), StatementFailure> {
        self.simple("COMMIT")?;
        self.hand_in();
        Ok(())
    }

    async fn rollback(&mut self) -> Result<(), StatementFailure> {
        self.gave_way = true;
        // Some failures have rolled it back already.
        if self.session.connection.is_autocommit() {
            return Ok(());
        }
        self.simple("ROLLBACK")?;
        self.hand_in();
        Ok(())
    }

    async fn append(&mut self, mut rows: TableRows) -> Result<u64, StatementFailure> {
        let columns: Vec<_> = rows.columns().collect();
        let marks = vec!["?"; columns.len()].join(", ");
        let insert = format!(
            "INSERT INTO {} ({}) VALUES ({marks})",
            rows.table(),
            columns.join(", ")
        );
        let mut appended = 0;
        loop {
            let some = self.append_some(&insert, &mut rows)?;
            self.hand_in();
            appended += some;
            if some < ROWS_PER_TRANSACTION as u64 {
                return Ok(appended);
            }
        }
    }

    async fn set_cap(&mut self, cap: Option<Duration>) -> Result<(), StatementFailure> {
        let set = self.cap.set(cap, &mut self.session.connection);
        set.map_err(|error| failure_of_sqlite(&error, self.session.vfs))
    }
}

fn bind_parameters<'a>(
    statement: &mut Statement<'_>,
    values: impl Iterator<Item = &'a DrawnValue>,
) -> rusqlite::Result<()> {
    for (index, value) in values.enumerate() {
        statement.raw_bind_parameter(index + 1, BoundValue(value))?;
    }
    Ok(())
}

struct BoundValue<'a>(&'a DrawnValue);

impl ToSql for BoundValue<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            DrawnValue::Int(number) => ValueRef::Integer(*number),
            DrawnValue::Float(number) => ValueRef::Real(*number),
            DrawnValue::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

/// Read all rows, and every column of them: a value that spilled over its page is only read when it is asked
/// for.
fn read_rows(rows: &mut Returned<'_>, sum: Option<usize>) -> rusqlite::Result<StatementOutcome> {
    let mut outcome = StatementOutcome::default();
    while let Some(row) = rows.next()? {
        outcome.rows += 1;
        for column in 0..row.as_ref().column_count() {
            let value = row.get_ref(column)?;
            if sum == Some(column) {
                outcome.sum = outcome.sum.wrapping_add(whole_number(value));
            }
        }
    }
    Ok(outcome)
}

fn whole_number(value: ValueRef<'_>) -> i64 {
    match value {
        ValueRef::Integer(number) => number,
        ValueRef::Real(number) => number as i64,
        _ => 0,
    }
}
