//! PostgreSQL: prepared statements over `tokio-postgres`, rows by COPY.

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use bytes::BytesMut;
use futures_util::SinkExt;
use tokio_postgres::config::Host;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Config, Connection, Error, NoTls, SimpleQueryMessage, Statement};

use crate::client::{Arguments, Client, Connector, Failure, Outcome};
use crate::error::LoadError;
use crate::rows::Rows;
use crate::sql::Template;

mod copy;
mod parameter;
mod socket;
mod sum;

use socket::Socket;

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
            .map_err(|error: Error| LoadError::Address(failure(&error).message))?;
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

impl Connector for PostgresConnector {
    type Client = PostgresClient;

    async fn connect(&self) -> Result<PostgresClient, Failure> {
        let client = match self.unix_socket() {
            Some(path) => {
                let socket = Socket::connect(&path)
                    .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
                driven(self.0.connect_raw(socket, NoTls).await)
            }
            None => driven(self.0.connect(NoTls).await),
        };
        Ok(PostgresClient {
            client: client.map_err(|error| failure(&error))?,
            statements: Vec::new(),
        })
    }
}

/// Run the connection in a task of its own. Its errors also reach callers that wait for an answer.
fn driven<S, T>(
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
    async fn simple(&self, sql: &str) -> Result<(), Failure> {
        self.client
            .batch_execute(sql)
            .await
            .map_err(|error| failure(&error))
    }
}

impl Client for PostgresClient {
    async fn prepare(&mut self, statement: &Template) -> Result<(), Failure> {
        let sql = statement.render(|index| format!("${}", index + 1));
        self.statements.push(
            self.client
                .prepare(&sql)
                .await
                .map_err(|error| failure(&error))?,
        );
        Ok(())
    }

    async fn query_number(&mut self, sql: &str) -> Result<Option<i64>, Failure> {
        let messages = self
            .client
            .simple_query(sql)
            .await
            .map_err(|error| failure(&error))?;
        let number = messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        let not_whole = |_| Failure::new("the result is not a whole number");
        number
            .map(|text| text.parse().map_err(not_whole))
            .transpose()
    }

    async fn begin(&mut self) -> Result<(), Failure> {
        self.simple("BEGIN").await
    }

    async fn execute(
        &mut self,
        statement: usize,
        arguments: Arguments<'_>,
        sum: Option<&str>,
    ) -> Result<Outcome, Failure> {
        let statement = &self.statements[statement];
        if let Some(column) = sum.filter(|_| !statement.columns().is_empty()) {
            return sum::execute(&self.client, statement, arguments, column).await;
        }
        let executed = self.client.execute_raw(statement, arguments.iter()).await;
        let rows = executed.map_err(|error| failure(&error))?;
        Ok(Outcome { rows, sum: 0 })
    }

    async fn commit(&mut self) -> Result<(), Failure> {
        self.simple("COMMIT").await
    }

    async fn rollback(&mut self) -> Result<(), Failure> {
        self.simple("ROLLBACK").await
    }

    async fn append(&mut self, mut rows: Rows) -> Result<u64, Failure> {
        let columns: Vec<_> = rows.columns().collect();
        let sql = format!("COPY {} ({}) FROM STDIN", rows.table(), columns.join(", "));
        let sink = self
            .client
            .copy_in(&sql)
            .await
            .map_err(|error| failure(&error))?;
        let mut sink = pin!(sink);
        let mut buffer = BytesMut::with_capacity(2 * COPY_BUFFER_BYTES);
        while let Some(row) = rows.next_row() {
            copy::write_row(row, &mut buffer);
            if buffer.len() >= COPY_BUFFER_BYTES {
                let full = buffer.split().freeze();
                sink.as_mut()
                    .send(full)
                    .await
                    .map_err(|error| failure(&error))?;
                buffer.reserve(2 * COPY_BUFFER_BYTES);
            }
        }
        sink.as_mut()
            .send(buffer.freeze())
            .await
            .map_err(|error| failure(&error))?;
        sink.finish().await.map_err(|error| failure(&error))
    }

    async fn hand_in_counts(&mut self) -> Result<(), Failure> {
        // A session reports at most once a second, and then only when it ends a transaction.
        self.simple("SELECT pg_stat_force_next_flush()").await
    }

    async fn set_cap(&mut self, cap: Option<Duration>) -> Result<(), Failure> {
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

fn failure(error: &Error) -> Failure {
    let Some(from_server) = error.as_db_error() else {
        let source = std::error::Error::source(error).map(|source| format!(": {source}"));
        return Failure::new(format!("{error}{}", source.unwrap_or_default()));
    };
    let gives_way = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
    ];
    let detail = from_server.detail().map(|detail| format!(" ({detail})"));
    Failure {
        message: format!("{}{}", from_server.message(), detail.unwrap_or_default()),
        retry: gives_way.contains(from_server.code()),
        capped: *from_server.code() == SqlState::QUERY_CANCELED,
    }
}
