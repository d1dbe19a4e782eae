//! Arithmetic on values that other generators drew.

use std::fmt::Write;

use serde::Deserialize;

use crate::drawn_value::DrawnValue;
use crate::value_generators::DrawingClient;
use crate::workload::GeneratorSpec;

/// A part of an expression in postfix order: a value to push, or an operation on the values pushed last.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExpressionTerm {
    /// Push a number.
    Number(i64),
    /// Push the value that the generator of this name drew last.
    Value(String),
    /// Push the number of the client, from 0.
    Client,
    /// Replace the last two by their sum. Here and below, results that are too great wrap around.
    Add,
    /// By the difference.
    Subtract,
    /// By the product.
    Multiply,
    /// By the quotient, towards 0; by 0 if the divisor is 0.
    Divide,
    /// By the remainder, which has the sign of the dividend; by 0 if the divisor is 0.
    Remainder,
    /// By the lesser.
    Least,
    /// By the greater.
    Greatest,
    /// Replace the last one by its magnitude.
    Absolute,
    /// By its negation.
    Negate,
}

/// An expression ready to evaluate.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    operations: Vec<ArithmeticOperation>,
    stack: Vec<i64>,
}

#[derive(Clone, Debug)]
enum ArithmeticOperation {
    Push(i64),
    Load(usize),
    Unary(fn(i64) -> i64),
    Binary(fn(i64, i64) -> i64),
}

impl Expression {
    /// Resolve names, and see that the terms leave exactly one number.
    ///
    /// # Errors
    /// Names what is unknown, or says that the terms do not add up.
    pub fn new(
        terms: &[ExpressionTerm],
        context: DrawingClient,
        position: impl Fn(&str) -> Option<usize>,
    ) -> Result<Self, String> {
        let operations = terms
            .iter()
            .map(|term| parse_operation(term, context, &position));
        let operations: Vec<_> = operations.collect::<Result<_, _>>()?;
        let depth = operations.iter().try_fold(0_usize, |depth, one| match one {
            ArithmeticOperation::Push(_) | ArithmeticOperation::Load(_) => Some(depth + 1),
            ArithmeticOperation::Unary(_) => Some(depth).filter(|&depth| depth > 0),
            ArithmeticOperation::Binary(_) => depth.checked_sub(1).filter(|&left| left > 0),
        });
        if depth != Some(1) {
            return Err("the terms do not leave one number".to_owned());
        }
        Ok(Self {
            operations,
            stack: Vec::new(),
        })
    }

    /// Write `values[slot]` from the values that it is made from; a value that is no whole number counts as
    /// 0.
    pub fn write(&mut self, values: &mut [DrawnValue], slot: usize) {
        let stack = &mut self.stack;
        let pop = |stack: &mut Vec<i64>| stack.pop().expect("checked when it was made");
        for operation in &self.operations {
            let result = match operation {
                ArithmeticOperation::Push(number) => *number,
                ArithmeticOperation::Load(of) => values[*of].as_int().unwrap_or(0),
                ArithmeticOperation::Unary(function) => function(pop(stack)),
                ArithmeticOperation::Binary(function) => {
                    let right = pop(stack);
                    function(pop(stack), right)
                }
            };
            stack.push(result);
        }
        values[slot] = DrawnValue::Int(pop(stack));
    }
}

fn parse_operation(
    term: &ExpressionTerm,
    context: DrawingClient,
    position: impl Fn(&str) -> Option<usize>,
) -> Result<ArithmeticOperation, String> {
    let unary = |function| Ok(ArithmeticOperation::Unary(function));
    let binary = |function| Ok(ArithmeticOperation::Binary(function));
    match term {
        ExpressionTerm::Number(number) => Ok(ArithmeticOperation::Push(*number)),
        ExpressionTerm::Client => Ok(ArithmeticOperation::Push(context.client as i64)),
        ExpressionTerm::Value(of) => {
            let found = position(of).ok_or_else(|| format!("{of:?} is unknown"))?;
            Ok(ArithmeticOperation::Load(found))
        }
        ExpressionTerm::Add => binary(i64::wrapping_add),
        ExpressionTerm::Subtract => binary(i64::wrapping_sub),
        ExpressionTerm::Multiply => binary(i64::wrapping_mul),
        ExpressionTerm::Divide => binary(|left, right| {
            if right == 0 {
                0
            } else {
                left.wrapping_div(right)
            }
        }),
        ExpressionTerm::Remainder => binary(|left, right| {
            if right == 0 {
                0
            } else {
                left.wrapping_rem(right)
            }
        }),
        ExpressionTerm::Least => binary(std::cmp::min),
        ExpressionTerm::Greatest => binary(std::cmp::max),
        ExpressionTerm::Absolute => unary(i64::wrapping_abs),
        ExpressionTerm::Negate => unary(i64::wrapping_neg),
    }
}

// Values made from those that other generators drew, and the order of drawing that results.

/// How generators of one workload, or of one table, depend on each other.
#[derive(Debug)]
pub(crate) struct GeneratorDependencies {
    sources: Vec<Vec<usize>>,
    depths: Vec<usize>,
}

impl GeneratorDependencies {
    /// Resolve names to positions.
    ///
    /// # Errors
    /// If a name is unknown, or generators are made of each other.
    pub fn new<'a>(
        named: impl Iterator<Item = (&'a str, &'a GeneratorSpec)>,
    ) -> Result<Self, String> {
        let named: Vec<_> = named.collect();
        let find = |name: &str, of: &str| {
            let found = named.iter().position(|(known, _)| *known == of);
            found.ok_or_else(|| format!("{name} names {of:?}, which is unknown"))
        };
        let sources = named.iter().map(|(name, spec)| {
            let sources = spec.sources();
            sources.into_iter().map(|of| find(name, of)).collect()
        });
        let sources: Vec<Vec<usize>> = sources.collect::<Result<_, String>>()?;
        let depths = dependency_depths(&sources).ok_or("some are made of each other")?;
        Ok(Self { sources, depths })
    }

    /// The values that a value is made from, directly.
    pub fn sources(&self, slot: usize) -> &[usize] {
        &self.sources[slot]
    }

    /// Add the values that those in `slots` are made from, directly or not.
    pub fn add_sources(&self, slots: &mut Vec<usize>) {
        let mut next = 0;
        while next < slots.len() {
            let sources = &self.sources[slots[next]];
            let new: Vec<_> = sources
                .iter()
                .filter(|source| !slots.contains(source))
                .collect();
            slots.extend(new);
            next += 1;
        }
    }

    /// Each once: sources of other values first, else in the order of declaration.
    pub fn in_order(&self, mut slots: Vec<usize>) -> Vec<usize> {
        slots.sort_unstable_by_key(|&slot| (self.depths[slot], slot));
        slots.dedup();
        slots
    }
}

/// Length of the longest chain of sources before each; `None` if that has no end.
fn dependency_depths(sources: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut depths = vec![0; sources.len()];
    for _ in 0..=sources.len() {
        let deeper = |of: &Vec<usize>| of.iter().map(|&one| depths[one] + 1).max().unwrap_or(0);
        let next: Vec<usize> = sources.iter().map(deeper).collect();
        if next == depths {
            return Some(depths);
        }
        depths = next;
    }
    None
}

// Numbered texts: a prefix, and the value drawn last for another name.

/// A label ready to write.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    prefix: String,
    of: usize,
    upper: bool,
}

impl Label {
    pub fn new(prefix: &str, of: usize, upper: bool) -> Self {
        Self {
            prefix: prefix.to_owned(),
            of,
            upper,
        }
    }

    /// Write `values[slot]` from the value that it is made from.
    pub fn write(&self, values: &mut [DrawnValue], slot: usize) {
        let [source, out] = values
            .get_disjoint_mut([self.of, slot])
            .expect("nothing is made of itself");
        let out = out.text_mut();
        out.push_str(&self.prefix);
        write!(out, "{source}").expect("a String takes any text");
        if self.upper {
            out.make_ascii_uppercase();
        }
    }
}
