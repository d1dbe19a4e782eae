//! Rows by prepared INSERTs of many rows each.
//!
//! LOAD DATA LOCAL was no faster. It turns errors into warnings and omits or alters the row.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Params, Value};

use super::{failure, value};
use crate::Rows;
use crate::client::Failure;

/// Enough rows for one statement to be worth a round trip.
const STATEMENT_ROWS: usize = 500;
/// The protocol's limit.
const STATEMENT_PARAMETERS: usize = u16::MAX as usize;
/// Statements that commit together: few flushes, and little to undo.
const TRANSACTION_STATEMENTS: usize = 100;

/// Append all rows.
pub(super) async fn append(connection: &mut Conn, rows: Rows) -> Result<u64, Failure> {
    let appended = insert_all(connection, rows).await;
    appended.map_err(|error| failure(&error))
}

async fn insert_all(connection: &mut Conn, mut rows: Rows) -> Result<u64, Error> {
    let columns = rows.columns().count();
    let most = (STATEMENT_PARAMETERS / columns).clamp(1, STATEMENT_ROWS);
    let one = connection.prep(insert(&rows, 1)).await?;
    let many = connection.prep(insert(&rows, most)).await?;
    let mut appended = 0;
    let mut open = 0;
    loop {
        let batch = next_batch(&mut rows, most * columns);
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
                .exec_drop(&one, Params::Positional(row.to_vec()))
                .await?;
            appended += connection.affected_rows();
        }
        connection.query_drop("COMMIT").await?;
        return Ok(appended);
    }
}

fn next_batch(rows: &mut Rows, most: usize) -> Vec<Value> {
    let mut batch = Vec::with_capacity(most);
    while batch.len() < most {
        let Some(row) = rows.next_row() else { break };
        batch.extend(row.iter().map(value::bind));
    }
    batch
}

fn insert(rows: &Rows, count: usize) -> String {
    let columns: Vec<_> = rows.columns().collect();
    let row = format!("({})", vec!["?"; columns.len()].join(", "));
    let values = vec![row; count].join(", ");
    let (table, columns) = (rows.table(), columns.join(", "));
    format!("INSERT INTO {table} ({columns}) VALUES {values}")
}
