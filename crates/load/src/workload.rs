//! The resolved form of a workload: every number final, no expression left.

use serde::Deserialize;

use crate::drawn_value::DrawnValue;
use crate::error::LoadError;
use crate::expression::ExpressionTerm;

/// Tables to fill and transactions to run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResolvedWorkload {
    /// Name of the workload.
    pub name: String,
    /// Pause of each client after each transaction, in milliseconds.
    pub think_ms: f64,
    /// Tables that the load phase fills.
    pub tables: Vec<WorkloadTable>,
    /// Generators that transactions name.
    pub parameters: Vec<StatementParameter>,
    /// Transactions that clients run.
    pub transactions: Vec<WorkloadTransaction>,
}

impl ResolvedWorkload {
    /// Read the JSON that the Python side writes.
    pub fn parse(json: &str) -> Result<Self, LoadError> {
        serde_json::from_str(json).map_err(|error| LoadError::Workload(error.to_string()))
    }
}

/// A table and how its rows are made.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadTable {
    /// Name as the schema has it.
    pub name: String,
    /// Number of rows that generators make.
    #[serde(default)]
    pub rows: u64,
    /// Columns that generators fill; the others keep their defaults.
    #[serde(default)]
    pub columns: Vec<WorkloadColumn>,
    /// The source of the rows, in place of generators.
    #[serde(default)]
    pub source: Option<TableSource>,
}

/// Source of rows other than generators of columns.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum TableSource {
    /// A table of the TPC-H-derived decision support.
    Tpch {
        /// Which: `lineitem`, for example.
        table: String,
        /// Size: 1 is about a gigabyte in all tables.
        scale_factor: f64,
        /// The rows that this number of refresh sets insert, in place of the table's own.
        refresh_sets: Option<u32>,
    },
}

/// A column and the generator of its values.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadColumn {
    /// Name as the schema has it.
    pub name: String,
    /// How a value is made.
    pub generator: GeneratorSpec,
}

/// A named generator that statements refer to as `:name`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatementParameter {
    /// Name without the colon.
    pub name: String,
    /// How a value is made.
    pub generator: GeneratorSpec,
}

/// A transaction of the mix.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadTransaction {
    /// Name.
    pub name: String,
    /// Share of the mix, relative to the other weights.
    pub weight: f64,
    /// Each statement commits on its own: no BEGIN and no COMMIT.
    pub autocommit: bool,
    /// The steps, in order.
    pub steps: Vec<TransactionStep>,
}

/// Statements that are repeated together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransactionStep {
    /// How often.
    pub repeat: RepeatCount,
    /// Parameters drawn anew for each repetition; the others are drawn once per transaction.
    pub draw: Vec<String>,
    /// Statements.
    pub sql: Vec<String>,
    /// Its contribution to the checksum of a run, if any.
    #[serde(default)]
    pub sum: Option<ChecksumPart>,
}

/// A step's contribution to the checksum of a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChecksumPart {
    /// This column of every row that is returned; null counts as 0.
    Column(String),
    /// The value of this parameter, once for each repetition.
    Parameter(String),
    /// The number of rows that are returned or changed.
    Rows,
}

/// A number of repetitions.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum RepeatCount {
    /// A fixed number.
    Count(u64),
    /// The value of this parameter.
    Parameter(String),
}

// Generators of values in a resolved workload.

/// A generator of values; bounds are inclusive.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum GeneratorSpec {
    /// Whole numbers, all equally likely.
    Uniform {
        /// Least.
        low: i64,
        /// Greatest.
        high: i64,
    },
    /// Whole numbers, `low` the most frequent: the k-th has a probability proportional to 1 / k^exponent.
    Zipf {
        /// Least.
        low: i64,
        /// Greatest.
        high: i64,
        /// Skew; 0 is uniform.
        exponent: f64,
    },
    /// Whole numbers under a bell over the middle of the range, as pgbench's random_gaussian.
    Gaussian {
        /// Least.
        low: i64,
        /// Greatest.
        high: i64,
        /// The range's half in standard deviations; at least 2.
        parameter: f64,
    },
    /// Whole numbers, `low` the most frequent, as pgbench's random_exponential.
    Exponential {
        /// Least.
        low: i64,
        /// Greatest.
        high: i64,
        /// How steeply the frequencies fall; above 0.
        parameter: f64,
    },
    /// TPC-C's NURand(a, low, high), its constant C from the seed.
    Nurand {
        /// The specification's A, one less than a power of two.
        a: i64,
        /// Least.
        low: i64,
        /// Greatest.
        high: i64,
    },
    /// Numbers that no other client draws (`global`), or counted by each client separately.
    Sequence {
        /// First number.
        start: i64,
        /// A query for the greatest number in use; counting goes on after it when it is not less than `start`.
        after: Option<String>,
        /// Unique among all clients, not only within one.
        global: bool,
    },
    /// The number of the row that is filled, or of the repetition within a step.
    Counter {
        /// Number of the first.
        start: i64,
        /// Number of rows or repetitions after which it advances by one.
        divide: u64,
        /// Number of values after which it starts again; never if absent.
        modulo: Option<u64>,
    },
    /// Letters, digits, `-` and `_`.
    Text {
        /// Least length.
        low: u64,
        /// Greatest length.
        high: u64,
    },
    /// Random UUID, version 4.
    Uuid,
    /// One of a list.
    Choice {
        /// What to choose from.
        values: Vec<DrawnValue>,
        /// Relative frequencies; equal if absent.
        weights: Option<Vec<f64>>,
    },
    /// A text made of a prefix and the value that another generator drew last.
    Label {
        /// Begins the text.
        prefix: String,
        /// The other parameter, or the other column of the row.
        of: String,
        /// All ASCII letters in upper case.
        #[serde(default)]
        upper: bool,
    },
    /// The numbers of a range, each once, in random order.
    Permutation {
        /// The other parameter or column, which counts the places in that order.
        of: String,
        /// Least.
        low: i64,
        /// Greatest.
        high: i64,
    },
    /// Whole-number arithmetic on values that other generators drew last.
    Expression {
        /// Its terms in postfix order.
        postfix: Vec<ExpressionTerm>,
    },
}

impl GeneratorSpec {
    /// The names of others whose values this one needs.
    pub(crate) fn sources(&self) -> Vec<&str> {
        match self {
            Self::Label { of, .. } | Self::Permutation { of, .. } => vec![of],
            Self::Expression { postfix } => (postfix.iter())
                .filter_map(|term| match term {
                    ExpressionTerm::Value(of) => Some(of.as_str()),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Whether all values that it draws are whole numbers.
    pub(crate) fn draws_whole_numbers(&self) -> bool {
        match self {
            Self::Text { .. } | Self::Uuid | Self::Label { .. } => false,
            Self::Choice { values, .. } => values.iter().all(|value| value.as_int().is_some()),
            _ => true,
        }
    }
}
