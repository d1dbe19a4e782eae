//! One client in a closed loop: draws, sends, waits, notes the time.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::cap::Cap;
use crate::client::Client;
use crate::context::Context;
use crate::control::Control;
use crate::draw::Generator;
use crate::error::LoadError;
use crate::generator_spec::GeneratorSpec;
use crate::plan::Plan;
use crate::random::{Random, random};
use crate::sequence::Sequence;
use crate::tally::Tally;
use crate::transaction::Ended;
use crate::value::Value;
use crate::worker::Share;

pub(crate) struct Session<C> {
    pub(crate) client: C,
    pub(crate) random: Random,
    pub(crate) cap: Option<Cap>,
    pub(crate) values: Vec<Value>,
    generators: Vec<Generator>,
    plan: Arc<Plan>,
    context: Context,
}

/// One client's part of a run.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub share: Share,
    /// The transaction that the run is restricted to.
    pub only: Option<usize>,
    pub cap: Option<Duration>,
    /// The number of the run, from 0.
    pub run: u64,
}

impl<C: Client> Session<C> {
    /// Prepare all statements, and query where the sequences go on.
    pub async fn new(mut client: C, plan: Arc<Plan>, context: Context) -> Result<Self, LoadError> {
        for statement in &plan.statements {
            let prepared = client.prepare(&statement.template).await;
            prepared.map_err(|failure| failure.in_statement("prepare", &statement.sql))?;
        }
        let mut generators = Vec::with_capacity(plan.parameters.len());
        for parameter in &plan.parameters {
            let used = number_in_use(&mut client, &parameter.generator).await?;
            let position = |name: &str| plan.slot(name).ok();
            let generator = Generator::new(&parameter.generator, context, used, position);
            generators.push(generator.map_err(|problem| {
                LoadError::Workload(format!("parameters.{}: {problem}", parameter.name))
            })?);
        }
        Ok(Self {
            client,
            random: random(context.seed, &[]),
            cap: None,
            values: vec![Value::Int(0); generators.len()],
            generators,
            plan,
            context,
        })
    }

    /// Run this client's part. The drawn values depend on the seed, the client and the number of the run
    /// only, so a longer warm-up leaves the measured run unchanged.
    pub async fn run(
        &mut self,
        part: Part,
        tally: &Mutex<Tally>,
        control: &Control,
    ) -> Result<(), LoadError> {
        self.random = random(self.context.seed, &[self.context.client, part.run]);
        if part.only.is_some() {
            self.each_sequence(Sequence::restart);
        }
        self.cap = part.cap.map(|cap| Cap::new(cap, Instant::now()));
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
        part: Part,
        tally: &Mutex<Tally>,
        control: &Control,
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
                Ended::Committed { attempts, work } => {
                    tally().add(kind, attempts, work, now - begun)
                }
                Ended::GivenUp => tally().errors += 1,
                Ended::Capped => {
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

    pub(crate) fn each_sequence(&mut self, act: impl FnMut(&mut Sequence)) {
        let generators = self.generators.iter_mut();
        generators.filter_map(Generator::sequence_mut).for_each(act);
    }

    pub(crate) fn draw(&mut self, slots: &[usize], ordinal: u64) {
        for &slot in slots {
            self.generators[slot].draw(&mut self.random, ordinal, &mut self.values, slot);
        }
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
