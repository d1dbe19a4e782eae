//! An engine that only notes what it is asked.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tierwise_load::sql::StatementTemplate;
use tierwise_load::{
    DrawnValue, EngineClient, EngineConnector, StatementArguments, StatementFailure,
    StatementOutcome, TableRows,
};

/// What one client was asked, in order: statement (or a word) and arguments.
pub type Log = Vec<(String, Vec<DrawnValue>)>;

/// What the engine does when it is asked to execute a statement.
pub type Behaviour = fn(client: usize, calls: usize) -> Result<(), StatementFailure>;

/// What every statement does, whatever column is asked for.
pub const OUTCOME: StatementOutcome = StatementOutcome { rows: 2, sum: 10 };

#[derive(Clone)]
pub struct Noting {
    logs: Arc<Mutex<Vec<Log>>>,
    behaviour: Behaviour,
}

pub struct NotingClient {
    number: usize,
    calls: usize,
    prepared: Vec<String>,
    logs: Arc<Mutex<Vec<Log>>>,
    behaviour: Behaviour,
}

impl Noting {
    pub fn new(behaviour: Behaviour) -> Self {
        Self {
            logs: Arc::default(),
            behaviour,
        }
    }

    /// What was asked since the last call, by client; clients that did nothing are left out.
    pub fn logs(&self) -> Vec<Log> {
        std::mem::take(&mut *self.logs.lock().unwrap())
            .into_iter()
            .filter(|log| !log.is_empty())
            .collect()
    }
}

impl EngineConnector for Noting {
    type Client = NotingClient;

    async fn connect(&self) -> Result<NotingClient, StatementFailure> {
        let number = self.logs.lock().unwrap().len();
        self.logs.lock().unwrap().push(Vec::new());
        let (logs, behaviour) = (Arc::clone(&self.logs), self.behaviour);
        Ok(NotingClient {
            number,
            calls: 0,
            prepared: Vec::new(),
            logs,
            behaviour,
        })
    }
}

impl NotingClient {
    fn note(&self, what: &str, arguments: Vec<DrawnValue>) {
        let mut logs = self.logs.lock().unwrap();
        let enough = logs.len().max(self.number + 1);
        logs.resize(enough, Vec::new());
        logs[self.number].push((what.to_owned(), arguments));
    }
}

impl EngineClient for NotingClient {
    async fn prepare(&mut self, statement: &StatementTemplate) -> Result<(), StatementFailure> {
        self.prepared
            .push(statement.render(|index| format!("?{index}")));
        Ok(())
    }

    async fn query_number(&mut self, sql: &str) -> Result<Option<i64>, StatementFailure> {
        assert_eq!(sql, "greatest");
        Ok(Some(100))
    }

    async fn begin(&mut self) -> Result<(), StatementFailure> {
        self.note("begin", vec![]);
        Ok(())
    }

    async fn execute(
        &mut self,
        statement: usize,
        arguments: StatementArguments<'_>,
        sum: Option<&str>,
    ) -> Result<StatementOutcome, StatementFailure> {
        tokio::task::yield_now().await;
        self.calls += 1;
        self.note(
            &self.prepared[statement],
            arguments.iter().cloned().collect(),
        );
        let sum = sum.map_or(0, |_| OUTCOME.sum);
        (self.behaviour)(self.number, self.calls).map(|()| StatementOutcome { sum, ..OUTCOME })
    }

    async fn commit(&mut self) -> Result<(), StatementFailure> {
        self.note("commit", vec![]);
        Ok(())
    }

    async fn rollback(&mut self) -> Result<(), StatementFailure> {
        self.note("rollback", vec![]);
        Ok(())
    }

    async fn append(&mut self, mut rows: TableRows) -> Result<u64, StatementFailure> {
        let mut count = 0;
        while let Some(row) = rows.next_row() {
            self.note("row", row.to_vec());
            count += 1;
        }
        Ok(count)
    }

    async fn set_cap(&mut self, cap: Option<Duration>) -> Result<(), StatementFailure> {
        self.note(if cap.is_some() { "cap" } else { "no cap" }, vec![]);
        Ok(())
    }
}
