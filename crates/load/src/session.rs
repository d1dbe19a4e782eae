//! One client in a closed loop: draws, sends, waits, notes the time.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::client::{Arguments, Client, Failure};
use crate::draw::{Context, Generator, Random, random};
use crate::error::LoadError;
use crate::plan::{Plan, PlannedRepeat, PlannedTransaction, Statement};
use crate::pool::Stop;
use crate::report::Tally;
use crate::value::Value;
use crate::worker::Share;
use crate::workload::GeneratorSpec;

/// A transaction that had to give way so often is given up, counted as an error.
const ATTEMPTS_MAX: u64 = 100;

pub(crate) struct Session<C> {
    client: C,
    plan: Arc<Plan>,
    context: Context,
    runs: u64,
    random: Random,
    generators: Vec<Generator>,
    values: Vec<Value>,
}

/// Why a transaction did not commit.
enum Broken {
    GaveWay,
    Failed(LoadError),
}

impl<C: Client> Session<C> {
    /// Prepare all statements, and ask where the sequences go on.
    pub async fn new(mut client: C, plan: Arc<Plan>, context: Context) -> Result<Self, LoadError> {
        for statement in &plan.statements {
            let prepared = client.prepare(&statement.template).await;
            prepared.map_err(|failure| failure.in_statement("prepare", &statement.sql))?;
        }
        let mut generators = Vec::with_capacity(plan.parameters.len());
        for parameter in &plan.parameters {
            let used = number_in_use(&mut client, &parameter.generator).await?;
            let generator =
                Generator::new(&parameter.generator, context, used).map_err(|problem| {
                    LoadError::Workload(format!("parameters.{}: {problem}", parameter.name))
                })?;
            generators.push(generator);
        }
        let values = vec![Value::Int(0); plan.parameters.len()];
        Ok(Self {
            client,
            plan,
            context,
            runs: 0,
            random: random(context.seed, &[]),
            generators,
            values,
        })
    }

    /// Run this client's share. What is drawn depends on the seed, the client and the number of the run
    /// only, so a longer warm-up leaves the measured run as it was.
    pub async fn run(
        &mut self,
        share: Share,
        tally: &Mutex<Tally>,
        stop: &Stop,
    ) -> Result<(), LoadError> {
        self.random = random(self.context.seed, &[self.context.client, self.runs]);
        self.runs += 1;
        let plan = Arc::clone(&self.plan);
        let think = Duration::from_secs_f64(plan.think_ms / 1e3);
        let mut done = 0;
        let mut begun = Instant::now();
        while share.has_more(done, begun) && !stop.is_set() {
            let kind = plan.choose(&mut self.random);
            let attempts = self.transaction(&plan, kind).await?;
            let ended = Instant::now();
            tally
                .lock()
                .expect("no panic under the lock")
                .add(kind, attempts, ended - begun);
            done += 1;
            begun = ended;
            if !think.is_zero() {
                tokio::time::sleep(think).await;
                begun = Instant::now();
            }
        }
        Ok(())
    }

    /// One transaction until it commits; returns the attempts that took, or `None` if it was given up.
    async fn transaction(&mut self, plan: &Plan, kind: usize) -> Result<Option<u64>, LoadError> {
        let transaction = &plan.transactions[kind];
        let drawn_from = self.random.clone();
        for attempt in 1..=ATTEMPTS_MAX {
            match self.attempt(plan, transaction).await {
                Ok(()) => return Ok(Some(attempt)),
                Err(Broken::Failed(error)) => return Err(error),
                Err(Broken::GaveWay) => self.random = drawn_from.clone(),
            }
        }
        Ok(None)
    }

    async fn attempt(
        &mut self,
        plan: &Plan,
        transaction: &PlannedTransaction,
    ) -> Result<(), Broken> {
        if transaction.autocommit {
            return self.steps(plan, transaction).await;
        }
        let begun = self.client.begin().await;
        begun
            .map_err(|failure| Broken::Failed(failure.in_statement(&transaction.name, "begin")))?;
        let mut outcome = self.steps(plan, transaction).await;
        if outcome.is_ok() {
            outcome = self
                .client
                .commit()
                .await
                .map_err(|failure| broken(failure, transaction, "commit"));
        }
        if matches!(outcome, Err(Broken::GaveWay)) {
            let rolled_back = self.client.rollback().await;
            rolled_back.map_err(|failure| {
                Broken::Failed(failure.in_statement(&transaction.name, "rollback"))
            })?;
        }
        outcome
    }

    async fn steps(&mut self, plan: &Plan, transaction: &PlannedTransaction) -> Result<(), Broken> {
        self.draw(&transaction.draw, 0);
        for step in &transaction.steps {
            let repetitions = match step.repeat {
                PlannedRepeat::Count(count) => count,
                PlannedRepeat::Parameter(slot) => {
                    self.values[slot].as_int().unwrap_or(0).max(0) as u64
                }
            };
            for repetition in 0..repetitions {
                self.draw(&step.draw, repetition);
                for &number in &step.statements {
                    let statement = &plan.statements[number];
                    self.execute(number, statement)
                        .await
                        .map_err(|failure| broken(failure, transaction, &statement.sql))?;
                }
            }
        }
        Ok(())
    }

    async fn execute(&mut self, number: usize, statement: &Statement) -> Result<(), Failure> {
        self.client
            .execute(number, Arguments::new(&self.values, &statement.slots))
            .await
    }

    fn draw(&mut self, slots: &[usize], ordinal: u64) {
        for &slot in slots {
            self.generators[slot].draw(&mut self.random, ordinal, &mut self.values[slot]);
        }
    }
}

fn broken(failure: Failure, transaction: &PlannedTransaction, sql: &str) -> Broken {
    if failure.retry {
        Broken::GaveWay
    } else {
        Broken::Failed(failure.in_statement(&transaction.name, sql))
    }
}

async fn number_in_use<C: Client>(
    client: &mut C,
    generator: &GeneratorSpec,
) -> Result<Option<i64>, LoadError> {
    let GeneratorSpec::Sequence {
        after: Some(query), ..
    } = generator
    else {
        return Ok(None);
    };
    client
        .query_number(query)
        .await
        .map_err(|failure| failure.in_statement("sequence", query))
}
