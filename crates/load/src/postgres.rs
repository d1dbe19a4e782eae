//! PostgreSQL: prepared statements over `tokio-postgres`, rows by COPY.

mod socket;

use std::fmt::Write;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use futures_util::{SinkExt, TryStreamExt};
use socket::PostgresSocket;
use tokio_postgres::config::Host;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{Format, FromSql, IsNull, ToSql, Type};
use tokio_postgres::{Config, Connection, Error, NoTls, SimpleQueryMessage, Statement};

use crate::drawn_value::DrawnValue;
use crate::engine_client::{
    EngineClient, EngineConnector, StatementArguments, StatementFailure, StatementOutcome,
};
use crate::error::LoadError;
use crate::sql::StatementTemplate;
use crate::table_rows::TableRows;

/// Name of the clients in `pg_stat_activity`.
const APPLICATION_NAME: &str = "tierwise-client";
const DEFAULT_PORT: u16 = 5432;
/// Enough rows for one write to the socket to be worth it.
const COPY_BUFFER_BYTES: usize = 1 << 16;

/// Where a PostgreSQL server is.
pub struct PostgresConnector(Config);

impl PostgresConnector {
    /// Read an address in the form of libpq, as keywords or as a URL.
    ///
    /// # Errors
    /// If it is neither.
    pub fn new(dsn: &str) -> Result<Self, LoadError> {
        let mut config: Config = dsn
            .parse()
            .map_err(|error: Error| LoadError::Address(failure_of_postgres(&error).message))?;
        config.application_name(APPLICATION_NAME);
        Ok(Self(config))
    }

    /// Path of the server's socket, if it is on this machine.
    fn unix_socket(&self) -> Option<PathBuf> {
        let [Host::Unix(directory)] = self.0.get_hosts() else {
            return None;
        };
        let port = self.0.get_ports().first().unwrap_or(&DEFAULT_PORT);
        Some(directory.join(format!(".s.PGSQL.{port}")))
    }
}

impl EngineConnector for PostgresConnector {
    type Client = PostgresClient;

    async fn connect(&self) -> Result<PostgresClient, StatementFailure> {
        let client = match self.unix_socket() {
            Some(path) => {
                let socket = PostgresSocket::connect(&path).map_err(|error| {
                    StatementFailure::new(format!("{}: {error}", path.display()))
                })?;
                drive_connection(self.0.connect_raw(socket, NoTls).await)
            }
            None => drive_connection(self.0.connect(NoTls).await),
        };
        Ok(PostgresClient {
            client: client.map_err(|error| failure_of_postgres(&error))?,
            statements: Vec::new(),
        })
    }
}

/// Run the connection in a task of its own. Its errors also reach callers that wait for an answer.
fn drive_connection<S, T>(
    connected: Result<(tokio_postgres::Client, Connection<S, T>), Error>,
) -> Result<tokio_postgres::Client, Error>
where
    Connection<S, T>: Future + Send + 'static,
    <Connection<S, T> as Future>::Output: Send,
{
    let (client, connection) = connected?;
    tokio::spawn(connection);
    Ok(client)
}

/// One session of a PostgreSQL server.
pub struct PostgresClient {
    client: tokio_postgres::Client,
    statements: Vec<Statement>,
}

impl PostgresClient {
    async fn simple(&self, sql: &str) -> Result<(), StatementFailure> {
        self.client
            .batch_execute(sql)
            .await
            .map_err(|error| failure_of_postgres(&error))
    }
}

impl EngineClient for PostgresClient {
    async fn prepare(&mut self, statement: &StatementTemplate) -> Result<(), StatementFailure> {
        let sql = statement.render(|index| format!("${}", index + 1));
        self.statements.push(
            self.client
                .prepare(&sql)
                .await
                .map_err(|error| failure_of_postgres(&error))?,
        );
        Ok(())
    }

    async fn query_number(&mut self, sql: &str) -> Result<Option<i64>, StatementFailure> {
        let messages = self
            .client
            .simple_query(sql)
            .await
            .map_err(|error| failure_of_postgres(&error))?;
        let number = messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        let not_whole = |_| StatementFailure::new("the result is not a whole number");
        number
            .map(|text| text.parse().map_err(not_whole))
            .transpose()
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
        let statement = &self.statements[statement];
        if let Some(column) = sum.filter(|_| !statement.columns().is_empty()) {
            return execute_and_sum(&self.client, statement, arguments, column).await;
        }
        let executed = self.client.execute_raw(statement, arguments.iter()).await;
        let rows = executed.map_err(|error| failure_of_postgres(&error))?;
        Ok(StatementOutcome { rows, sum: 0 })
    }

    async fn commit(&mut self) -> Result<(), StatementFailure> {
        self.simple("COMMIT").await
    }

    async fn rollback(&mut self) -> Result<(), StatementFailure> {
        self.simple("ROLLBACK").await
    }

    async fn append(&mut self, mut rows: TableRows) -> Result<u64, StatementFailure> {
        let columns: Vec<_> = rows.columns().collect();
        let sql = format!("COPY {} ({}) FROM STDIN", rows.table(), columns.join(", "));
        let sink = self
            .client
            .copy_in(&sql)
            .await
            .map_err(|error| failure_of_postgres(&error))?;
        let mut sink = pin!(sink);
        let mut buffer = BytesMut::with_capacity(2 * COPY_BUFFER_BYTES);
        while let Some(row) = rows.next_row() {
            write_copy_row(row, &mut buffer);
            if buffer.len() >= COPY_BUFFER_BYTES {
                let full = buffer.split().freeze();
                sink.as_mut()
                    .send(full)
                    .await
                    .map_err(|error| failure_of_postgres(&error))?;
                buffer.reserve(2 * COPY_BUFFER_BYTES);
            }
        }
        sink.as_mut()
            .send(buffer.freeze())
            .await
            .map_err(|error| failure_of_postgres(&error))?;
        sink.finish()
            .await
            .map_err(|error| failure_of_postgres(&error))
    }

    async fn hand_in_counts(&mut self) -> Result<(), StatementFailure> {
        // A session reports at most once a second, and then only when it ends a transaction.
        self.simple("SELECT pg_stat_force_next_flush()").await
    }

    async fn set_cap(&mut self, cap: Option<Duration>) -> Result<(), StatementFailure> {
        // The server counts in milliseconds, and takes 0 for no limit. Rounded up: none is stopped too early.
        let whole_ms = |cap: Duration| {
            cap.as_nanos()
                .div_ceil(1_000_000)
                .clamp(1, i32::MAX as u128)
        };
        let limit_ms = cap.map_or(0, whole_ms);
        self.simple(&format!("SET statement_timeout = {limit_ms}"))
            .await
    }
}

fn failure_of_postgres(error: &Error) -> StatementFailure {
    let Some(from_server) = error.as_db_error() else {
        let source = std::error::Error::source(error).map(|source| format!(": {source}"));
        return StatementFailure::new(format!("{error}{}", source.unwrap_or_default()));
    };
    let gives_way = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
    ];
    let detail = from_server.detail().map(|detail| format!(" ({detail})"));
    StatementFailure {
        message: format!("{}{}", from_server.message(), detail.unwrap_or_default()),
        retry: gives_way.contains(from_server.code()),
        capped: *from_server.code() == SqlState::QUERY_CANCELED,
    }
}

// Rows in the text format of COPY.

/// Add one line.
pub(super) fn write_copy_row(row: &[DrawnValue], out: &mut BytesMut) {
    for (index, value) in row.iter().enumerate() {
        if index > 0 {
            out.put_u8(b'\t');
        }
        match value {
            DrawnValue::Text(text) => write_copy_text(text, out),
            number => write!(out, "{number}").expect("memory takes all text"),
        }
    }
    out.put_u8(b'\n');
}

fn write_copy_text(text: &str, out: &mut BytesMut) {
    let special = |byte: &u8| matches!(byte, b'\\' | b'\t' | b'\n' | b'\r');
    if !text.as_bytes().iter().any(special) {
        return out.put_slice(text.as_bytes());
    }
    for &byte in text.as_bytes() {
        match byte {
            b'\\' => out.put_slice(b"\\\\"),
            b'\t' => out.put_slice(b"\\t"),
            b'\n' => out.put_slice(b"\\n"),
            b'\r' => out.put_slice(b"\\r"),
            plain => out.put_u8(plain),
        }
    }
}

// Values as the parameters of a prepared statement, in the type that the server found for each.

impl ToSql for DrawnValue {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match (self, binary_number_type(ty)) {
            (Self::Int(number), Some(BinaryNumberType::Int2)) => out.put_i16((*number).try_into()?),
            (Self::Int(number), Some(BinaryNumberType::Int4)) => out.put_i32((*number).try_into()?),
            (Self::Int(number), Some(BinaryNumberType::Int8)) => out.put_i64(*number),
            (Self::Int(number), Some(BinaryNumberType::Float8)) => out.put_f64(*number as f64),
            (Self::Float(number), Some(BinaryNumberType::Float8)) => out.put_f64(*number),
            (Self::Text(_) | Self::Float(_), Some(_)) => {
                return Err(format!("{self:?} given where the statement takes {ty}").into());
            }
            (Self::Int(number), None) => out.put_slice(number.to_string().as_bytes()),
            (Self::Float(number), None) => out.put_slice(number.to_string().as_bytes()),
            (Self::Text(text), None) => out.put_slice(text.as_bytes()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, ty: &Type) -> Format {
        if binary_number_type(ty).is_some() {
            Format::Binary
        } else {
            Format::Text
        }
    }

    tokio_postgres::types::to_sql_checked!();
}

/// Types whose binary form is a number; the server reads all others from text.
enum BinaryNumberType {
    Int2,
    Int4,
    Int8,
    Float8,
}

fn binary_number_type(ty: &Type) -> Option<BinaryNumberType> {
    match *ty {
        Type::INT2 => Some(BinaryNumberType::Int2),
        Type::INT4 => Some(BinaryNumberType::Int4),
        Type::INT8 => Some(BinaryNumberType::Int8),
        Type::FLOAT8 => Some(BinaryNumberType::Float8),
        _ => None,
    }
}

// A column of a result added up while it is read.

/// Run a statement and add up one column of its rows.
pub(super) async fn execute_and_sum(
    client: &tokio_postgres::Client,
    statement: &Statement,
    arguments: StatementArguments<'_>,
    column: &str,
) -> Result<StatementOutcome, StatementFailure> {
    let mut columns = statement.columns().iter();
    let column = columns
        .position(|field| field.name() == column)
        .ok_or_else(|| StatementFailure::no_column(column))?;
    let rows = client.query_raw(statement, arguments.iter()).await;
    let mut rows = pin!(rows.map_err(|error| failure_of_postgres(&error))?);
    let mut outcome = StatementOutcome::default();
    while let Some(row) = rows
        .try_next()
        .await
        .map_err(|error| failure_of_postgres(&error))?
    {
        let number: Option<WholeSum> = row
            .try_get(column)
            .map_err(|error| failure_of_postgres(&error))?;
        outcome.add(StatementOutcome {
            rows: 1,
            sum: number.map_or(0, |WholeSum(number)| number),
        });
    }
    Ok(outcome)
}

/// A whole number of any of the server's types; `sum` and `count` return the larger ones.
struct WholeSum(i64);

impl FromSql<'_> for WholeSum {
    fn from_sql(ty: &Type, raw: &[u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(match *ty {
            Type::INT2 => i16::from_sql(ty, raw)?.into(),
            Type::INT4 => i32::from_sql(ty, raw)?.into(),
            Type::INT8 => i64::from_sql(ty, raw)?,
            _ => numeric_from_binary(raw).ok_or("not a whole number of at most 64 bits")?,
        }))
    }

    fn accepts(ty: &Type) -> bool {
        matches!(*ty, Type::INT2 | Type::INT4 | Type::INT8 | Type::NUMERIC)
    }
}

/// Reads the binary form of `numeric`: digits of base 10,000, the first of them worth 10,000^weight.
fn numeric_from_binary(raw: &[u8]) -> Option<i64> {
    const NEGATIVE: i16 = 0x4000;
    const POSITIVE: i16 = 0;
    let mut words = raw
        .chunks_exact(2)
        .map(|word| i16::from_be_bytes([word[0], word[1]]));
    let (_count, weight, sign, _scale) =
        (words.next()?, words.next()?, words.next()?, words.next()?);
    let mut number: i64 = 0;
    let mut digits = words;
    for _ in 0..=weight {
        let digit = i64::from(digits.next().unwrap_or(0));
        number = number.checked_mul(10_000)?.checked_add(digit)?;
    }
    let whole = digits.all(|digit| digit == 0);
    match sign {
        POSITIVE if whole => Some(number),
        NEGATIVE if whole => Some(-number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(weight: i16, sign: i16, digits: &[i16]) -> Vec<u8> {
        let head = [digits.len() as i16, weight, sign, 0];
        let words = head.iter().chain(digits);
        words.flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn whole_numerics_are_read() {
        assert_eq!(numeric_from_binary(&raw(0, 0, &[])), Some(0));
        assert_eq!(numeric_from_binary(&raw(1, 0, &[12, 3456])), Some(123_456));
        assert_eq!(
            numeric_from_binary(&raw(2, 0x4000, &[5])),
            Some(-500_000_000)
        );
    }

    #[test]
    fn fractions_and_what_does_not_fit_are_not() {
        assert_eq!(numeric_from_binary(&raw(0, 0, &[1, 5000])), None);
        assert_eq!(numeric_from_binary(&raw(5, 0, &[9999; 6])), None);
        assert_eq!(numeric_from_binary(&raw(0, 0xc000_u16 as i16, &[])), None);
    }
}
