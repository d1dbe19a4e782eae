//! A workload compiled: names resolved to numbers, statements split into text and parameters.

use rand_distr::Distribution;
use rand_distr::weighted::WeightedIndex;

use crate::draw::Random;
use crate::error::LoadError;
use crate::sql::Template;
use crate::workload::{GeneratorSpec, Parameter, Repeat, Step, Transaction, Workload};

/// What every client of a pool shares.
#[derive(Debug)]
pub struct Plan {
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) statements: Vec<Statement>,
    pub(crate) transactions: Vec<PlannedTransaction>,
    pub(crate) think_ms: f64,
    mix: WeightedIndex<f64>,
}

#[derive(Debug)]
pub(crate) struct Statement {
    /// As the workload writes it.
    pub sql: String,
    pub template: Template,
    /// The parameter behind each of the template's names.
    pub slots: Vec<usize>,
}

#[derive(Debug)]
pub(crate) struct PlannedTransaction {
    pub name: String,
    pub autocommit: bool,
    /// Parameters drawn once, at the start.
    pub draw: Vec<usize>,
    pub steps: Vec<PlannedStep>,
}

#[derive(Debug)]
pub(crate) struct PlannedStep {
    pub repeat: PlannedRepeat,
    /// Parameters drawn in each repetition.
    pub draw: Vec<usize>,
    pub statements: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum PlannedRepeat {
    Count(u64),
    Parameter(usize),
}

impl Plan {
    /// Compile the transactions of a workload.
    ///
    /// # Errors
    /// Names the transaction and the parameter that is unknown, or says that there is nothing to run.
    pub fn new(workload: &Workload) -> Result<Self, LoadError> {
        let weights = workload.transactions.iter().map(|one| one.weight);
        let mix = WeightedIndex::new(weights).map_err(|error| {
            LoadError::Workload(format!("weights of the transactions: {error}"))
        })?;
        let mut plan = Self {
            parameters: workload.parameters.clone(),
            statements: Vec::new(),
            transactions: Vec::new(),
            think_ms: workload.think_ms,
            mix,
        };
        for transaction in &workload.transactions {
            let planned = plan.compile(transaction)?;
            plan.transactions.push(planned);
        }
        Ok(plan)
    }

    /// Which transaction comes next.
    pub(crate) fn choose(&self, random: &mut Random) -> usize {
        self.mix.sample(random)
    }

    fn compile(&mut self, transaction: &Transaction) -> Result<PlannedTransaction, LoadError> {
        let steps = transaction
            .steps
            .iter()
            .map(|step| self.compile_step(step))
            .collect::<Result<Vec<_>, _>>();
        let steps = steps.map_err(|problem| {
            LoadError::Workload(format!("transaction {}: {problem}", transaction.name))
        })?;
        Ok(PlannedTransaction {
            name: transaction.name.clone(),
            autocommit: transaction.autocommit,
            draw: self.drawn_at_start(&steps),
            steps,
        })
    }

    fn compile_step(&mut self, step: &Step) -> Result<PlannedStep, String> {
        let mut draw = step
            .draw
            .iter()
            .map(|name| self.slot(name))
            .collect::<Result<Vec<_>, _>>()?;
        let repeat = match &step.repeat {
            Repeat::Count(count) => PlannedRepeat::Count(*count),
            Repeat::Parameter(name) => PlannedRepeat::Parameter(self.slot(name)?),
        };
        let mut statements = Vec::new();
        for sql in &step.sql {
            let template = Template::parse(sql);
            let slots = template
                .names()
                .iter()
                .map(|name| self.slot(name))
                .collect::<Result<Vec<_>, _>>()?;
            draw.extend(slots.iter().filter(|&&slot| self.counts_repetitions(slot)));
            statements.push(self.statements.len());
            self.statements.push(Statement {
                sql: sql.clone(),
                template,
                slots,
            });
        }
        draw.sort_unstable();
        draw.dedup();
        Ok(PlannedStep {
            repeat,
            draw,
            statements,
        })
    }

    fn slot(&self, name: &str) -> Result<usize, String> {
        let found = self
            .parameters
            .iter()
            .position(|parameter| parameter.name == name);
        found.ok_or_else(|| format!("unknown parameter :{name}"))
    }

    fn counts_repetitions(&self, slot: usize) -> bool {
        matches!(
            self.parameters[slot].generator,
            GeneratorSpec::Counter { .. }
        )
    }

    /// Whatever a step uses and does not draw itself, in the order of declaration.
    fn drawn_at_start(&self, steps: &[PlannedStep]) -> Vec<usize> {
        let needs = |step: &PlannedStep, slot: usize| {
            let repeats = matches!(step.repeat, PlannedRepeat::Parameter(by) if by == slot);
            let binds = step
                .statements
                .iter()
                .any(|&statement| self.statements[statement].slots.contains(&slot));
            repeats || binds && !step.draw.contains(&slot)
        };
        (0..self.parameters.len())
            .filter(|&slot| steps.iter().any(|step| needs(step, slot)))
            .collect()
    }
}
