//! One client in a closed loop: draws, sends, waits, notes the time.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::client_worker::{ClientShare, ThreadTally};
use crate::drawn_value::DrawnValue;
use crate::engine_client::{EngineClient, StatementArguments, StatementFailure, StatementOutcome};
use crate::error::LoadError;
use crate::run_control::{RunControl, StatementDeadline};
use crate::value_generators::{
    DrawingClient, RandomSource, SequenceGenerator, ValueGenerator, random_stream,
};
use crate::workload::GeneratorSpec;
use crate::workload_plan::{
    PlannedRepeat, PlannedStep, PlannedSum, PlannedTransaction, WorkloadPlan,
};

pub(crate) struct ClientSession<C> {
    pub(crate) client: C,
    pub(crate) random: RandomSource,
    pub(crate) cap: Option<StatementDeadline>,
    pub(crate) values: Vec<DrawnValue>,
    generators: Vec<ValueGenerator>,
    plan: Arc<WorkloadPlan>,
    context: DrawingClient,
}

/// One client's part of a run.
#[derive(Clone, Copy)]
pub(crate) struct ClientReport {
    pub share: ClientShare,
    /// The transaction that the run is restricted to.
    pub only: Option<usize>,
    pub cap: Option<Duration>,
    /// The number of the run, from 0.
    pub run: u64,
}

impl<C: EngineClient> ClientSession<C> {
    /// Prepare all statements, and query where the sequences go on.
    pub async fn new(
        mut client: C,
        plan: Arc<WorkloadPlan>,
        context: DrawingClient,
    ) -> Result<Self, LoadError> {
        for statement in &plan.statements {
            let prepared = client.prepare(&statement.template).await;
            prepared.map_err(|failure| failure.in_statement("prepare", &statement.sql))?;
        }
        let mut generators = Vec::with_capacity(plan.parameters.len());
        for parameter in &plan.parameters {
            let used = number_in_use(&mut client, &parameter.generator).await?;
            let position = |name: &str| plan.slot(name).ok();
            let generator = ValueGenerator::new(&parameter.generator, context, used, position);
            generators.push(generator.map_err(|problem| {
                LoadError::Workload(format!("parameters.{}: {problem}", parameter.name))
            })?);
        }
        Ok(Self {
            client,
            random: random_stream(context.seed, &[]),
            cap: None,
            values: vec![DrawnValue::Int(0); generators.len()],
            generators,
            plan,
            context,
        })
    }

    /// Run this client's part. The drawn values depend on the seed, the client and the number of the run
    /// only, so a longer warm-up leaves the measured run unchanged.
    pub async fn run(
        &mut self,
        part: ClientReport,
        tally: &Mutex<ThreadTally>,
        control: &RunControl,
    ) -> Result<(), LoadError> {
        self.random = random_stream(self.context.seed, &[self.context.client, part.run]);
        if part.only.is_some() {
            self.each_sequence(SequenceGenerator::restart);
        }
        self.cap = part
            .cap
            .map(|cap| StatementDeadline::new(cap, Instant::now()));
        self.transactions(part, tally, control).await?;
        if self.cap.take().is_some() {
            let lifted = self.client.set_cap(None).await;
            lifted.map_err(|failure| failure.in_statement("end of the run", "no cap"))?;
        }
        Ok(())
    }

    /// Let the engine update its counters; no part of any run.
    pub async fn hand_in_counts(&mut self) -> Result<(), LoadError> {
        let handed_in = self.client.hand_in_counts().await;
        handed_in.map_err(|failure| failure.in_statement("after the run", "hand in counts"))
    }

    async fn transactions(
        &mut self,
        part: ClientReport,
        tally: &Mutex<ThreadTally>,
        control: &RunControl,
    ) -> Result<(), LoadError> {
        let plan = Arc::clone(&self.plan);
        let think = Duration::from_secs_f64(plan.think_ms / 1e3);
        let tally = || tally.lock().expect("no panic under the lock");
        let mut done = 0;
        let mut begun = Instant::now();
        while part.share.has_more(done, begun) && !control.is_stopped() {
            let kind = match part.only {
                Some(kind) => kind,
                None => plan.choose(&mut self.random),
            };
            let ended = self.transaction(&plan, kind).await?;
            let now = Instant::now();
            match ended {
                TransactionEnd::Committed { attempts, work } => {
                    tally().add(kind, attempts, work, now - begun)
                }
                TransactionEnd::GivenUp => tally().errors += 1,
                TransactionEnd::Capped => {
                    tally().capped = true;
                    break;
                }
            }
            control.add_done(1);
            done += 1;
            begun = now;
            if !think.is_zero() {
                tokio::time::sleep(think).await;
                begun = Instant::now();
            }
        }
        Ok(())
    }

    pub(crate) fn each_sequence(&mut self, act: impl FnMut(&mut SequenceGenerator)) {
        let generators = self.generators.iter_mut();
        generators
            .filter_map(ValueGenerator::sequence_mut)
            .for_each(act);
    }

    pub(crate) fn draw(&mut self, slots: &[usize], ordinal: u64) {
        for &slot in slots {
            self.generators[slot].draw(&mut self.random, ordinal, &mut self.values, slot);
        }
    }
}

async fn number_in_use<C: EngineClient>(
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

// One transaction of one client: tried until it commits, is given up, or its time is over.

/// Attempts after which a transaction that gave way is given up, counted as an error.
const ATTEMPTS_MAX: u64 = 100;

/// How a transaction ended.
pub(crate) enum TransactionEnd {
    Committed {
        attempts: u64,
        work: StatementOutcome,
    },
    GivenUp,
    Capped,
}

/// Why an attempt did not commit.
enum FailedAttempt {
    GaveWay,
    Capped,
    Failed(LoadError),
}

impl<C: EngineClient> ClientSession<C> {
    /// Try one transaction until it commits.
    pub(crate) async fn transaction(
        &mut self,
        plan: &WorkloadPlan,
        kind: usize,
    ) -> Result<TransactionEnd, LoadError> {
        let transaction = &plan.transactions[kind];
        let drawn_from = self.random.clone();
        self.each_sequence(SequenceGenerator::mark);
        for attempts in 1..=ATTEMPTS_MAX {
            match self.attempt(plan, transaction).await {
                Ok(work) => return Ok(TransactionEnd::Committed { attempts, work }),
                Err(FailedAttempt::Failed(error)) => return Err(error),
                Err(FailedAttempt::Capped) => return Ok(TransactionEnd::Capped),
                Err(FailedAttempt::GaveWay) => {
                    self.random = drawn_from.clone();
                    if !transaction.autocommit {
                        self.each_sequence(SequenceGenerator::rewind);
                    }
                }
            }
        }
        Ok(TransactionEnd::GivenUp)
    }

    async fn attempt(
        &mut self,
        plan: &WorkloadPlan,
        transaction: &PlannedTransaction,
    ) -> Result<StatementOutcome, FailedAttempt> {
        if transaction.autocommit {
            return self.steps(plan, transaction).await;
        }
        let failed = |failure: StatementFailure, sql| {
            FailedAttempt::Failed(failure.in_statement(&transaction.name, sql))
        };
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
        if matches!(outcome, Err(FailedAttempt::GaveWay | FailedAttempt::Capped)) {
            let rolled_back = self.client.rollback().await;
            rolled_back.map_err(|failure| failed(failure, "rollback"))?;
            self.cap.iter_mut().for_each(StatementDeadline::forget);
        }
        outcome
    }

    async fn steps(
        &mut self,
        plan: &WorkloadPlan,
        transaction: &PlannedTransaction,
    ) -> Result<StatementOutcome, FailedAttempt> {
        let mut work = StatementOutcome::default();
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
        plan: &WorkloadPlan,
        number: usize,
        step: &PlannedStep,
    ) -> Result<StatementOutcome, StatementFailure> {
        self.check_cap().await?;
        let column = match &step.sum {
            Some(PlannedSum::Column(name)) => Some(name.as_str()),
            _ => None,
        };
        let arguments = StatementArguments::new(&self.values, &plan.statements[number].slots);
        let mut outcome = self.client.execute(number, arguments, column).await?;
        if matches!(step.sum, Some(PlannedSum::Rows)) {
            outcome.sum = outcome.rows as i64;
        }
        Ok(outcome)
    }

    /// Tell the engine how much time is left, where it must know.
    async fn check_cap(&mut self) -> Result<(), StatementFailure> {
        if let Some(cap) = &mut self.cap
            && let Some(left) = cap.due(Instant::now())?
        {
            self.client.set_cap(Some(left)).await?;
        }
        Ok(())
    }

    /// Only a run with a cap ends orderly when an engine stops a statement.
    fn broken(
        &self,
        failure: StatementFailure,
        transaction: &PlannedTransaction,
        sql: &str,
    ) -> FailedAttempt {
        if failure.capped && self.cap.is_some() {
            FailedAttempt::Capped
        } else if failure.retry {
            FailedAttempt::GaveWay
        } else {
            FailedAttempt::Failed(failure.in_statement(&transaction.name, sql))
        }
    }

    /// The value of a parameter that draws whole numbers.
    fn number(&self, slot: usize) -> i64 {
        self.values[slot].as_int().unwrap_or(0)
    }
}
