//! Generators of values in a resolved workload.

use serde::Deserialize;

use crate::expression::Term;
use crate::value::Value;

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
        values: Vec<Value>,
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
        postfix: Vec<Term>,
    },
}

impl GeneratorSpec {
    /// The names of others whose values this one needs.
    pub(crate) fn sources(&self) -> Vec<&str> {
        match self {
            Self::Label { of, .. } | Self::Permutation { of, .. } => vec![of],
            Self::Expression { postfix } => (postfix.iter())
                .filter_map(|term| match term {
                    Term::Value(of) => Some(of.as_str()),
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
            Self::Choice { values, .. } => values.iter().all(|one| one.as_int().is_some()),
            _ => true,
        }
    }
}
