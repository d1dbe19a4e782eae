//! MariaDB: prepared statements in the binary protocol over `mysql_async`.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{
    BinaryProtocol, Conn, Error, Opts, OptsBuilder, Params, QueryResult, Statement, Value,
};

use crate::engine_client::{
    EngineClient, EngineConnector, StatementArguments, StatementFailure, StatementOutcome,
};
use crate::error::LoadError;
use crate::sql::StatementTemplate;
use crate::table_rows::TableRows;

/// "Record has changed since last read", "Lock wait timeout exceeded", "Deadlock found".
const GIVES_WAY: [u16; 3] = [1020, 1205, 1213];
/// "Query execution was interrupted (max_statement_time exceeded)".
const STATEMENT_TIMEOUT: u16 = 1969;

/// Where a MariaDB server is.
pub struct MariadbConnector(Opts);

impl MariadbConnector {
    /// Read an address: a URL such as `mysql://me@localhost/base`, or keywords such as
    /// `socket=/tmp/m.sock user=me dbname=base`; there are also `host`, `port` and `password`.
    ///
    /// # Errors
    /// If it is neither.
    pub fn new(address: &str) -> Result<Self, LoadError> {
        parse_mariadb_options(address).map(Self)
    }
}

impl EngineConnector for MariadbConnector {
    type Client = MariadbClient;

    async fn connect(&self) -> Result<MariadbClient, StatementFailure> {
        let connection = Conn::new(self.0.clone()).await;
        Ok(MariadbClient {
            connection: connection.map_err(|error| failure_of_mariadb(&error))?,
            statements: Vec::new(),
        })
    }
}

/// One session of a MariaDB server.
pub struct MariadbClient {
    connection: Conn,
    statements: Vec<PreparedStatement>,
}

struct PreparedStatement {
    statement: Statement,
    /// The parameter at each of its marks, which have no number.
    places: Vec<usize>,
}

impl MariadbClient {
    async fn simple(&mut self, sql: &str) -> Result<(), StatementFailure> {
        let done = self.connection.query_drop(sql).await;
        done.map_err(|error| failure_of_mariadb(&error))
    }
}

impl EngineClient for MariadbClient {
    async fn prepare(&mut self, statement: &StatementTemplate) -> Result<(), StatementFailure> {
        let places = statement.places().collect();
        let prepared = self.connection.prep(statement.render(|_| "?".to_owned()));
        self.statements.push(PreparedStatement {
            statement: prepared.await.map_err(|error| failure_of_mariadb(&error))?,
            places,
        });
        Ok(())
    }

    async fn query_number(&mut self, sql: &str) -> Result<Option<i64>, StatementFailure> {
        let result = self.connection.query_iter(sql).await;
        let mut result = result.map_err(|error| failure_of_mariadb(&error))?;
        let row = result
            .next()
            .await
            .map_err(|error| failure_of_mariadb(&error))?;
        let number = row.and_then(|mut row| row.take(0));
        let number = number.map_or(Ok(None), whole_number);
        result
            .drop_result()
            .await
            .map_err(|error| failure_of_mariadb(&error))?;
        number
    }

    async fn begin(&mut self) -> Result<(), StatementFailure> {
        self.simple("BEGIN").await
    }

    async fn execute(
        &mut self,
        statement: usize,
        arguments: StatementArguments<'_>,
        sum: Option<&str>,
    ) -> Result<StatementOutcome, StatementFailure> {
        let PreparedStatement { statement, places } = &self.statements[statement];
        let values = places.iter().map(|&place| bind_value(arguments.get(place)));
        let parameters = match places.len() {
            0 => Params::Empty,
            _ => Params::Positional(values.collect()),
        };
        let result = self.connection.exec_iter(statement, parameters).await;
        read_result(result.map_err(|error| failure_of_mariadb(&error))?, sum).await
    }

    async fn commit(&mut self) -> Result<(), StatementFailure> {
        self.simple("COMMIT").await
    }

    async fn rollback(&mut self) -> Result<(), StatementFailure> {
        self.simple("ROLLBACK").await
    }

    async fn append(&mut self, rows: TableRows) -> Result<u64, StatementFailure> {
        append_rows(&mut self.connection, rows).await
    }

    async fn set_cap(&mut self, cap: Option<Duration>) -> Result<(), StatementFailure> {
        // The server takes 0 for no limit, and counts in microseconds.
        let limit_us = cap.map_or(0, |cap| cap.as_nanos().div_ceil(1000).max(1));
        let limit_s = format!("{}.{:06}", limit_us / 1_000_000, limit_us % 1_000_000);
        self.simple(&format!("SET SESSION max_statement_time = {limit_s}"))
            .await
    }
}

fn failure_of_mariadb(error: &Error) -> StatementFailure {
    let Error::Server(from_server) = error else {
        return StatementFailure::new(error.to_string());
    };
    StatementFailure {
        message: from_server.message.clone(),
        retry: GIVES_WAY.contains(&from_server.code),
        capped: from_server.code == STATEMENT_TIMEOUT,
    }
}

// Where a server is, as a URL or in keywords.

/// Options of a connection, which counts the rows that an update finds and not only those that it changes,
/// as other engines do, and keeps all its statements.
pub(super) fn parse_mariadb_options(text: &str) -> Result<Opts, LoadError> {
    let options = if text.contains("://") {
        let url = text.replacen("mariadb://", "mysql://", 1);
        let options = Opts::from_url(&url).map_err(|error| address_error(&error.to_string()))?;
        OptsBuilder::from_opts(options)
    } else {
        parse_keywords(text)?
    };
    Ok(options.stmt_cache_size(0).client_found_rows(true).into())
}

fn parse_keywords(text: &str) -> Result<OptsBuilder, LoadError> {
    let mut options = OptsBuilder::default().prefer_socket(false);
    for word in text.split_whitespace() {
        let Some((keyword, value)) = word.split_once('=') else {
            return Err(address_error(&format!(
                "{word:?} is no keyword with a value"
            )));
        };
        options = match keyword {
            "socket" => options.socket(Some(value)),
            "host" => options.ip_or_hostname(value),
            "port" => options.tcp_port(
                (value.parse())
                    .map_err(|_| address_error(&format!("port {value:?} is no number")))?,
            ),
            "user" => options.user(Some(value)),
            "password" => options.pass(Some(value)),
            "dbname" => options.db_name(Some(value)),
            _ => return Err(address_error(&format!("unknown keyword {keyword:?}"))),
        };
    }
    Ok(options)
}

fn address_error(problem: &str) -> LoadError {
    LoadError::Address(problem.to_owned())
}

// The result of a statement, and the sum of one of its columns.

/// Read a result to its end.
pub(super) async fn read_result(
    mut result: QueryResult<'_, '_, BinaryProtocol>,
    sum: Option<&str>,
) -> Result<StatementOutcome, StatementFailure> {
    let columns = result.columns_ref();
    if columns.is_empty() {
        let rows = result.affected_rows();
        return Ok(StatementOutcome { rows, sum: 0 });
    }
    let named = |name: &str| columns.iter().position(|column| column.name_str() == name);
    let column = match sum {
        Some(name) => Some(named(name).ok_or_else(|| StatementFailure::no_column(name))?),
        None => None,
    };
    let mut outcome = StatementOutcome::default();
    while let Some(mut row) = result
        .next()
        .await
        .map_err(|error| failure_of_mariadb(&error))?
    {
        let number = column.and_then(|column| row.take(column));
        outcome.add(StatementOutcome {
            rows: 1,
            sum: number.map_or(Ok(None), whole_number)?.unwrap_or(0),
        });
    }
    Ok(outcome)
}

/// A whole number of any of the server's types; `sum` gives decimals, which come as text.
pub(super) fn whole_number(value: Value) -> Result<Option<i64>, StatementFailure> {
    let number = match &value {
        Value::NULL => return Ok(None),
        Value::Int(number) => Some(*number),
        Value::UInt(number) => i64::try_from(*number).ok(),
        Value::Bytes(text) => {
            let text = std::str::from_utf8(text).ok();
            text.and_then(|text| text.parse().ok())
        }
        _ => None,
    };
    let problem = || format!("{} is not a whole number", value.as_sql(false));
    number
        .map(Some)
        .ok_or_else(|| StatementFailure::new(problem()))
}

// Values as parameters of a prepared statement.

/// A value in the type that comes nearest.
pub(super) fn bind_value(value: &crate::drawn_value::DrawnValue) -> Value {
    match value {
        crate::drawn_value::DrawnValue::Int(number) => Value::Int(*number),
        crate::drawn_value::DrawnValue::Float(number) => Value::Double(*number),
        crate::drawn_value::DrawnValue::Text(text) => Value::Bytes(text.as_bytes().to_vec()),
    }
}

// Rows by prepared INSERTs of many rows each.
//
// LOAD DATA LOCAL was no faster. It turns errors into warnings and omits or alters the row.

/// Enough rows for one statement to be worth a round trip.
const STATEMENT_ROWS: usize = 500;
/// The protocol's limit.
const STATEMENT_PARAMETERS: usize = u16::MAX as usize;
/// Statements that commit together: few flushes, and little to undo.
const TRANSACTION_STATEMENTS: usize = 100;

/// Append all rows.
pub(super) async fn append_rows(
    connection: &mut Conn,
    rows: TableRows,
) -> Result<u64, StatementFailure> {
    let appended = insert_all_rows(connection, rows).await;
    appended.map_err(|error| failure_of_mariadb(&error))
}

async fn insert_all_rows(connection: &mut Conn, mut rows: TableRows) -> Result<u64, Error> {
    let columns = rows.columns().count();
    let most = (STATEMENT_PARAMETERS / columns).clamp(1, STATEMENT_ROWS);
    let one_row = connection.prep(insert_batch(&rows, 1)).await?;
    let many = connection.prep(insert_batch(&rows, most)).await?;
    let mut appended = 0;
    let mut open = 0;
    loop {
        let batch = next_insert_batch(&mut rows, most * columns);
        if open == 0 {
            connection.query_drop("BEGIN").await?;
        }
        if batch.len() == most * columns {
            connection
                .exec_drop(&many, Params::Positional(batch))
                .await?;
            appended += connection.affected_rows();
            open = (open + 1) % TRANSACTION_STATEMENTS;
            if open == 0 {
                connection.query_drop("COMMIT").await?;
            }
            continue;
        }
        for row in batch.chunks(columns) {
            connection
                .exec_drop(&one_row, Params::Positional(row.to_vec()))
                .await?;
            appended += connection.affected_rows();
        }
        connection.query_drop("COMMIT").await?;
        return Ok(appended);
    }
}

fn next_insert_batch(rows: &mut TableRows, most: usize) -> Vec<Value> {
    let mut batch = Vec::with_capacity(most);
    while batch.len() < most {
        let Some(row) = rows.next_row() else { break };
        batch.extend(row.iter().map(bind_value));
    }
    batch
}

fn insert_batch(rows: &TableRows, count: usize) -> String {
    let columns: Vec<_> = rows.columns().collect();
    let row = format!("({})", vec!["?"; columns.len()].join(", "));
    let values = vec![row; count].join(", ");
    let (table, columns) = (rows.table(), columns.join(", "));
    format!("INSERT INTO {table} ({columns}) VALUES {values}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_and_urls_say_the_same() {
        let keywords =
            parse_mariadb_options("host=db port=3307 user=me password=x dbname=base").unwrap();
        let url = parse_mariadb_options("mariadb://me:x@db:3307/base?prefer_socket=false").unwrap();
        assert_eq!(keywords, url);
        let socket = parse_mariadb_options("socket=/tmp/m.sock user=me").unwrap();
        assert_eq!(socket.socket(), Some("/tmp/m.sock"));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (text, problem) in [
            ("nonsense", "nonsense"),
            ("port=high", "port \"high\""),
            ("sock=/tmp/m.sock", "\"sock\""),
            ("http://db", "http"),
        ] {
            let message = parse_mariadb_options(text).unwrap_err().to_string();
            assert!(message.contains(problem), "{text}: {message}");
        }
    }

    #[test]
    fn whole_numbers_are_read_and_others_named() {
        assert_eq!(whole_number(Value::NULL), Ok(None));
        assert_eq!(whole_number(Value::Int(-7)), Ok(Some(-7)));
        assert_eq!(whole_number(Value::Bytes(b"123".to_vec())), Ok(Some(123)));
        for other in [Value::Double(0.5), Value::UInt(u64::MAX)] {
            assert!(
                whole_number(other)
                    .unwrap_err()
                    .message
                    .contains("not a whole number")
            );
        }
    }
}
