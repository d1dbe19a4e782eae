//! MariaDB: prepared statements in the binary protocol over `mysql_async`.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Opts, Params, Statement};

use crate::client::{Arguments, Client, Connector, Failure, Outcome};
use crate::error::LoadError;
use crate::rows::Rows;
use crate::sql::Template;

mod address;
mod append;
mod outcome;
mod value;

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
        address::parse(address).map(Self)
    }
}

impl Connector for MariadbConnector {
    type Client = MariadbClient;

    async fn connect(&self) -> Result<MariadbClient, Failure> {
        let connection = Conn::new(self.0.clone()).await;
        Ok(MariadbClient {
            connection: connection.map_err(|error| failure(&error))?,
            statements: Vec::new(),
        })
    }
}

/// One session of a MariaDB server.
pub struct MariadbClient {
    connection: Conn,
    statements: Vec<Prepared>,
}

struct Prepared {
    statement: Statement,
    /// The parameter at each of its marks, which have no number.
    places: Vec<usize>,
}

impl MariadbClient {
    async fn simple(&mut self, sql: &str) -> Result<(), Failure> {
        let done = self.connection.query_drop(sql).await;
        done.map_err(|error| failure(&error))
    }
}

impl Client for MariadbClient {
    async fn prepare(&mut self, statement: &Template) -> Result<(), Failure> {
        let places = statement.places().collect();
        let prepared = self.connection.prep(statement.render(|_| "?".to_owned()));
        self.statements.push(Prepared {
            statement: prepared.await.map_err(|error| failure(&error))?,
            places,
        });
        Ok(())
    }

    async fn query_number(&mut self, sql: &str) -> Result<Option<i64>, Failure> {
        let result = self.connection.query_iter(sql).await;
        let mut result = result.map_err(|error| failure(&error))?;
        let row = result.next().await.map_err(|error| failure(&error))?;
        let number = row.and_then(|mut row| row.take(0));
        let number = number.map_or(Ok(None), outcome::whole);
        result
            .drop_result()
            .await
            .map_err(|error| failure(&error))?;
        number
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
        let Prepared { statement, places } = &self.statements[statement];
        let values = places
            .iter()
            .map(|&place| value::bind(arguments.get(place)));
        let parameters = match places.len() {
            0 => Params::Empty,
            _ => Params::Positional(values.collect()),
        };
        let result = self.connection.exec_iter(statement, parameters).await;
        outcome::read(result.map_err(|error| failure(&error))?, sum).await
    }

    async fn commit(&mut self) -> Result<(), Failure> {
        self.simple("COMMIT").await
    }

    async fn rollback(&mut self) -> Result<(), Failure> {
        self.simple("ROLLBACK").await
    }

    async fn append(&mut self, rows: Rows) -> Result<u64, Failure> {
        append::append(&mut self.connection, rows).await
    }

    async fn set_cap(&mut self, cap: Option<Duration>) -> Result<(), Failure> {
        // The server takes 0 for no limit, and counts in microseconds.
        let limit_us = cap.map_or(0, |cap| cap.as_nanos().div_ceil(1000).max(1));
        let limit_s = format!("{}.{:06}", limit_us / 1_000_000, limit_us % 1_000_000);
        self.simple(&format!("SET SESSION max_statement_time = {limit_s}"))
            .await
    }
}

fn failure(error: &Error) -> Failure {
    let Error::Server(from_server) = error else {
        return Failure::new(error.to_string());
    };
    Failure {
        message: from_server.message.clone(),
        retry: GIVES_WAY.contains(&from_server.code),
        capped: from_server.code == STATEMENT_TIMEOUT,
    }
}
