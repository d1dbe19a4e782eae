//! A workload compiled: names resolved to numbers, statements split into text and parameters.

use rand_distr::Distribution;
use rand_distr::weighted::WeightedIndex;

use crate::error::LoadError;
use crate::expression::GeneratorDependencies;
use crate::sql::StatementTemplate;
use crate::value_generators::RandomSource;
use crate::workload::{
    ChecksumPart, GeneratorSpec, RepeatCount, ResolvedWorkload, StatementParameter,
    TransactionStep, WorkloadTransaction,
};

/// State that all clients of a pool share.
#[derive(Debug)]
pub struct WorkloadPlan {
    pub(crate) parameters: Vec<StatementParameter>,
    pub(crate) statements: Vec<PlannedStatement>,
    pub(crate) transactions: Vec<PlannedTransaction>,
    pub(crate) think_ms: f64,
    derivation: GeneratorDependencies,
    mix: WeightedIndex<f64>,
}

#[derive(Debug)]
pub(crate) struct PlannedStatement {
    /// As the workload writes it.
    pub sql: String,
    pub template: StatementTemplate,
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
    pub sum: Option<PlannedSum>,
}

#[derive(Clone, Debug)]
pub(crate) enum PlannedSum {
    Column(String),
    Parameter(usize),
    Rows,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum PlannedRepeat {
    Count(u64),
    Parameter(usize),
}

impl WorkloadPlan {
    /// Compile the transactions of a workload.
    ///
    /// # Errors
    /// Names the transaction and the parameter that is unknown, or says that there is nothing to run.
    pub fn new(workload: &ResolvedWorkload) -> Result<Self, LoadError> {
        let weights = workload
            .transactions
            .iter()
            .map(|transaction| transaction.weight);
        let mix = WeightedIndex::new(weights).map_err(|error| {
            LoadError::Workload(format!("weights of the transactions: {error}"))
        })?;
        let named = workload.parameters.iter();
        let derivation = GeneratorDependencies::new(
            named.map(|parameter| (parameter.name.as_str(), &parameter.generator)),
        )
        .map_err(|problem| LoadError::Workload(format!("parameters: {problem}")))?;
        let mut plan = Self {
            parameters: workload.parameters.clone(),
            derivation,
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

    /// Draw the next transaction.
    pub(crate) fn choose(&self, random: &mut RandomSource) -> usize {
        self.mix.sample(random)
    }

    /// The number of a transaction.
    ///
    /// # Errors
    /// If there is none of this name.
    pub(crate) fn number_of(&self, transaction: &str) -> Result<usize, LoadError> {
        let mut names = self
            .transactions
            .iter()
            .map(|transaction| transaction.name.as_str());
        names
            .position(|name| name == transaction)
            .ok_or_else(|| LoadError::Workload(format!("there is no transaction {transaction:?}")))
    }

    /// Whether a run of one transaction, or of the mix, gives a checksum.
    pub(crate) fn has_sum(&self, only: Option<usize>) -> bool {
        let mut run = (self.transactions.iter().enumerate())
            .filter(|(number, _)| only.is_none_or(|only| only == *number));
        run.any(|(_, one)| one.steps.iter().any(|step| step.sum.is_some()))
    }

    fn compile(
        &mut self,
        transaction: &WorkloadTransaction,
    ) -> Result<PlannedTransaction, LoadError> {
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

    fn compile_step(&mut self, step: &TransactionStep) -> Result<PlannedStep, String> {
        let slots = |names: &[String]| -> Result<Vec<usize>, String> {
            names.iter().map(|name| self.slot(name)).collect()
        };
        let drawn = slots(&step.draw)?;
        let repeat = match &step.repeat {
            RepeatCount::Count(count) => PlannedRepeat::Count(*count),
            RepeatCount::Parameter(name) => PlannedRepeat::Parameter(self.slot(name)?),
        };
        let statements = step.sql.iter().map(|sql| {
            let template = StatementTemplate::parse(sql);
            Ok(PlannedStatement {
                sql: sql.clone(),
                slots: slots(template.names())?,
                template,
            })
        });
        let statements: Vec<_> = statements.collect::<Result<_, String>>()?;
        let sum = step
            .sum
            .as_ref()
            .map(|sum| self.compile_sum(sum))
            .transpose()?;
        let first = self.statements.len();
        self.statements.extend(statements);
        let mut planned = PlannedStep {
            repeat,
            draw: Vec::new(),
            statements: (first..self.statements.len()).collect(),
            sum,
        };
        planned.draw = self.drawn_in_step(&planned, drawn);
        Ok(planned)
    }

    fn compile_sum(&self, sum: &ChecksumPart) -> Result<PlannedSum, String> {
        Ok(match sum {
            ChecksumPart::Rows => PlannedSum::Rows,
            ChecksumPart::Column(name) => PlannedSum::Column(name.clone()),
            ChecksumPart::Parameter(name) => {
                let slot = self.slot(name)?;
                if !self.parameters[slot].generator.draws_whole_numbers() {
                    return Err(format!("the sum of :{name}, which is no whole number"));
                }
                PlannedSum::Parameter(slot)
            }
        })
    }

    pub(crate) fn slot(&self, name: &str) -> Result<usize, String> {
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

    /// Parameters that the step draws itself: those it declares, counters, and all made from these.
    fn drawn_in_step(&self, step: &PlannedStep, mut drawn: Vec<usize>) -> Vec<usize> {
        let needed = self.derivation.in_order(self.needed(step));
        drawn.extend(needed.iter().filter(|&&slot| self.counts_repetitions(slot)));
        for slot in needed {
            let sources = self.derivation.sources(slot);
            if sources.iter().any(|of| drawn.contains(of)) {
                drawn.push(slot);
            }
        }
        self.derivation.in_order(drawn)
    }

    /// Parameters that a step needs and does not draw itself.
    fn drawn_at_start(&self, steps: &[PlannedStep]) -> Vec<usize> {
        let mut drawn = Vec::new();
        for step in steps {
            if let PlannedRepeat::Parameter(slot) = step.repeat {
                drawn.push(slot);
                self.derivation.add_sources(&mut drawn);
            }
            let needed = self.needed(step);
            drawn.extend(needed.iter().filter(|slot| !step.draw.contains(slot)));
        }
        self.derivation.in_order(drawn)
    }

    /// Parameters that the statements of a step bind or that it adds up, and those that these are made from.
    fn needed(&self, step: &PlannedStep) -> Vec<usize> {
        let statements = step.statements.iter().map(|&one| &self.statements[one]);
        let mut needed: Vec<_> = statements
            .flat_map(|statement| statement.slots.clone())
            .collect();
        if let Some(PlannedSum::Parameter(slot)) = step.sum {
            needed.push(slot);
        }
        self.derivation.add_sources(&mut needed);
        needed
    }
}
