//! Arithmetic on values that other generators drew.

use serde::Deserialize;

use crate::context::Context;
use crate::value::Value;

/// A part of an expression in postfix order: a value to push, or an operation on the values pushed last.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Term {
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
    operations: Vec<Operation>,
    stack: Vec<i64>,
}

#[derive(Clone, Debug)]
enum Operation {
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
        terms: &[Term],
        context: Context,
        position: impl Fn(&str) -> Option<usize>,
    ) -> Result<Self, String> {
        let operations = terms.iter().map(|term| operation(term, context, &position));
        let operations: Vec<_> = operations.collect::<Result<_, _>>()?;
        let depth = operations.iter().try_fold(0_usize, |depth, one| match one {
            Operation::Push(_) | Operation::Load(_) => Some(depth + 1),
            Operation::Unary(_) => Some(depth).filter(|&depth| depth > 0),
            Operation::Binary(_) => depth.checked_sub(1).filter(|&left| left > 0),
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
    pub fn write(&mut self, values: &mut [Value], slot: usize) {
        let stack = &mut self.stack;
        let pop = |stack: &mut Vec<i64>| stack.pop().expect("checked when it was made");
        for operation in &self.operations {
            let result = match operation {
                Operation::Push(number) => *number,
                Operation::Load(of) => values[*of].as_int().unwrap_or(0),
                Operation::Unary(function) => function(pop(stack)),
                Operation::Binary(function) => {
                    let right = pop(stack);
                    function(pop(stack), right)
                }
            };
            stack.push(result);
        }
        values[slot] = Value::Int(pop(stack));
    }
}

fn operation(
    term: &Term,
    context: Context,
    position: impl Fn(&str) -> Option<usize>,
) -> Result<Operation, String> {
    let unary = |function| Ok(Operation::Unary(function));
    let binary = |function| Ok(Operation::Binary(function));
    match term {
        Term::Number(number) => Ok(Operation::Push(*number)),
        Term::Client => Ok(Operation::Push(context.client as i64)),
        Term::Value(of) => {
            let found = position(of).ok_or_else(|| format!("{of:?} is unknown"))?;
            Ok(Operation::Load(found))
        }
        Term::Add => binary(i64::wrapping_add),
        Term::Subtract => binary(i64::wrapping_sub),
        Term::Multiply => binary(i64::wrapping_mul),
        Term::Divide => binary(|left, right| {
            if right == 0 {
                0
            } else {
                left.wrapping_div(right)
            }
        }),
        Term::Remainder => binary(|left, right| {
            if right == 0 {
                0
            } else {
                left.wrapping_rem(right)
            }
        }),
        Term::Least => binary(std::cmp::min),
        Term::Greatest => binary(std::cmp::max),
        Term::Absolute => unary(i64::wrapping_abs),
        Term::Negate => unary(i64::wrapping_neg),
    }
}
