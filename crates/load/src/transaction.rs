//! One transaction of one client: tried until it commits, is given up, or its time is over.

use std::time::Instant;

use crate::cap::Cap;
use crate::client::{Arguments, Client, Failure, Outcome};
use crate::error::LoadError;
use crate::plan::{Plan, PlannedRepeat, PlannedStep, PlannedSum, PlannedTransaction};
use crate::sequence::Sequence;
use crate::session::Session;

/// Attempts after which a transaction that gave way is given up, counted as an error.
const ATTEMPTS_MAX: u64 = 100;

/// How a transaction ended.
pub(crate) enum Ended {
    Committed { attempts: u64, work: Outcome },
    GivenUp,
    Capped,
}

/// Why an attempt did not commit.
enum Broken {
    GaveWay,
    Capped,
    Failed(LoadError),
}

impl<C: Client> Session<C> {
    /// Try one transaction until it commits.
    pub(crate) async fn transaction(
        &mut self,
        plan: &Plan,
        kind: usize,
    ) -> Result<Ended, LoadError> {
        let transaction = &plan.transactions[kind];
        let drawn_from = self.random.clone();
        self.each_sequence(Sequence::mark);
        for attempts in 1..=ATTEMPTS_MAX {
            match self.attempt(plan, transaction).await {
                Ok(work) => return Ok(Ended::Committed { attempts, work }),
                Err(Broken::Failed(error)) => return Err(error),
                Err(Broken::Capped) => return Ok(Ended::Capped),
                Err(Broken::GaveWay) => {
                    self.random = drawn_from.clone();
                    if !transaction.autocommit {
                        self.each_sequence(Sequence::rewind);
                    }
                }
            }
        }
        Ok(Ended::GivenUp)
    }

    async fn attempt(
        &mut self,
        plan: &Plan,
        transaction: &PlannedTransaction,
    ) -> Result<Outcome, Broken> {
        if transaction.autocommit {
            return self.steps(plan, transaction).await;
        }
        let failed =
            |failure: Failure, sql| Broken::Failed(failure.in_statement(&transaction.name, sql));
        self.check_cap()
            .await
            .map_err(|failure| self.broken(failure, transaction, "begin"))?;
        let begun = self.client.begin().await;
        begun.map_err(|failure| failed(failure, "begin"))?;
        let mut outcome = self.steps(plan, transaction).await;
        if outcome.is_ok() {
            let committed = self.client.commit().await;
            if let Err(failure) = committed {
                outcome = Err(self.broken(failure, transaction, "commit"));
            }
        }
        if matches!(outcome, Err(Broken::GaveWay | Broken::Capped)) {
            let rolled_back = self.client.rollback().await;
            rolled_back.map_err(|failure| failed(failure, "rollback"))?;
            self.cap.iter_mut().for_each(Cap::forget);
        }
        outcome
    }

    async fn steps(
        &mut self,
        plan: &Plan,
        transaction: &PlannedTransaction,
    ) -> Result<Outcome, Broken> {
        let mut work = Outcome::default();
        self.draw(&transaction.draw, 0);
        for step in &transaction.steps {
            let repetitions = match step.repeat {
                PlannedRepeat::Count(count) => count,
                PlannedRepeat::Parameter(slot) => self.number(slot).max(0) as u64,
            };
            for repetition in 0..repetitions {
                self.draw(&step.draw, repetition);
                for &number in &step.statements {
                    let executed = self.execute(plan, number, step).await;
                    let sql = &plan.statements[number].sql;
                    work.add(executed.map_err(|failure| self.broken(failure, transaction, sql))?);
                }
                if let Some(PlannedSum::Parameter(slot)) = step.sum {
                    work.sum = work.sum.wrapping_add(self.number(slot));
                }
            }
        }
        Ok(work)
    }

    async fn execute(
        &mut self,
        plan: &Plan,
        number: usize,
        step: &PlannedStep,
    ) -> Result<Outcome, Failure> {
        self.check_cap().await?;
        let column = match &step.sum {
            Some(PlannedSum::Column(name)) => Some(name.as_str()),
            _ => None,
        };
        let arguments = Arguments::new(&self.values, &plan.statements[number].slots);
        let mut outcome = self.client.execute(number, arguments, column).await?;
        if matches!(step.sum, Some(PlannedSum::Rows)) {
            outcome.sum = outcome.rows as i64;
        }
        Ok(outcome)
    }

    /// Tell the engine how much time is left, where it must know.
    async fn check_cap(&mut self) -> Result<(), Failure> {
        if let Some(cap) = &mut self.cap
            && let Some(left) = cap.due(Instant::now())?
        {
            self.client.set_cap(Some(left)).await?;
        }
        Ok(())
    }

    /// Only a run with a cap ends orderly when an engine stops a statement.
    fn broken(&self, failure: Failure, transaction: &PlannedTransaction, sql: &str) -> Broken {
        if failure.capped && self.cap.is_some() {
            Broken::Capped
        } else if failure.retry {
            Broken::GaveWay
        } else {
            Broken::Failed(failure.in_statement(&transaction.name, sql))
        }
    }

    /// The value of a parameter that draws whole numbers.
    fn number(&self, slot: usize) -> i64 {
        self.values[slot].as_int().unwrap_or(0)
    }
}
