//! The resolved form of a workload: every number final, no expression left.

use serde::Deserialize;

use crate::error::LoadError;
use crate::generator_spec::GeneratorSpec;

/// Tables to fill and transactions to run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Name of the workload.
    pub name: String,
    /// Pause of each client after each transaction, in milliseconds.
    pub think_ms: f64,
    /// Tables that the load phase fills.
    pub tables: Vec<Table>,
    /// Generators that transactions name.
    pub parameters: Vec<Parameter>,
    /// Transactions that clients run.
    pub transactions: Vec<Transaction>,
}

impl Workload {
    /// Read the JSON that the Python side writes.
    pub fn parse(json: &str) -> Result<Self, LoadError> {
        serde_json::from_str(json).map_err(|error| LoadError::Workload(error.to_string()))
    }
}

/// A table and how its rows are made.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Name as the schema has it.
    pub name: String,
    /// Number of rows that generators make.
    #[serde(default)]
    pub rows: u64,
    /// Columns that generators fill; the others keep their defaults.
    #[serde(default)]
    pub columns: Vec<Column>,
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
pub struct Column {
    /// Name as the schema has it.
    pub name: String,
    /// How a value is made.
    pub generator: GeneratorSpec,
}

/// A named generator that statements refer to as `:name`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Name without the colon.
    pub name: String,
    /// How a value is made.
    pub generator: GeneratorSpec,
}

/// A transaction of the mix.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transaction {
    /// Name.
    pub name: String,
    /// Share of the mix, relative to the other weights.
    pub weight: f64,
    /// Each statement commits on its own: no BEGIN and no COMMIT.
    pub autocommit: bool,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// Statements that are repeated together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// How often.
    pub repeat: Repeat,
    /// Parameters drawn anew for each repetition; the others are drawn once per transaction.
    pub draw: Vec<String>,
    /// Statements.
    pub sql: Vec<String>,
    /// Its contribution to the checksum of a run, if any.
    #[serde(default)]
    pub sum: Option<Sum>,
}

/// A step's contribution to the checksum of a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sum {
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
pub enum Repeat {
    /// A fixed number.
    Count(u64),
    /// The value of this parameter.
    Parameter(String),
}
