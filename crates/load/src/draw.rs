//! Generators of values, deterministic by seed.

use rand::distr::uniform::Uniform;
use rand::distr::weighted::WeightedIndex;
use rand_distr::{Distribution, Zipf};

use crate::context::Context;
use crate::expression::Expression;
use crate::generator_spec::GeneratorSpec;
use crate::label::Label;
use crate::permutation::Permutation;
use crate::random::{Random, random, write_text, write_uuid};
use crate::sequence::Sequence;
use crate::skew::{Shape, Skew};
use crate::value::Value;

/// A generator ready to draw.
#[derive(Clone, Debug)]
pub struct Generator(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Uniform(Uniform<i64>),
    Skew(Skew),
    Zipf {
        low: i64,
        ranks: Zipf<f64>,
    },
    Nurand {
        a: Uniform<i64>,
        range: Uniform<i64>,
        low: i64,
        size: i64,
        c: i64,
    },
    Sequence(Sequence),
    Counter {
        start: i64,
        divide: u64,
        modulo: u64,
    },
    Text(Uniform<u64>),
    Uuid,
    Choice {
        values: Vec<Value>,
        index: WeightedIndex<f64>,
    },
    Label(Label),
    Permutation(Permutation),
    Expression(Expression),
}

impl Generator {
    /// Prepare to draw. `used` is the greatest number that a sequence finds in use, if it asked; `position`
    /// tells where among the values that one of another name stands.
    ///
    /// # Errors
    /// Says which bound is impossible, or which name is unknown.
    pub fn new(
        spec: &GeneratorSpec,
        context: Context,
        used: Option<i64>,
        position: impl Fn(&str) -> Option<usize>,
    ) -> Result<Self, String> {
        let known =
            |of: &str| position(of).ok_or_else(|| format!("of names {of:?}, which is unknown"));
        let kind = match spec {
            &GeneratorSpec::Uniform { low, high } => Kind::Uniform(between(low, high)?),
            &GeneratorSpec::Zipf {
                low,
                high,
                exponent,
            } => {
                let size = between(low, high).map(|_| (high - low + 1) as f64)?;
                let ranks = Zipf::new(size, exponent)
                    .map_err(|error| format!("exponent {exponent}: {error}"))?;
                Kind::Zipf { low, ranks }
            }
            &GeneratorSpec::Gaussian {
                low,
                high,
                parameter,
            } => Kind::Skew(Skew::new(Shape::Gaussian, low, high, parameter)?),
            &GeneratorSpec::Exponential {
                low,
                high,
                parameter,
            } => Kind::Skew(Skew::new(Shape::Exponential, low, high, parameter)?),
            &GeneratorSpec::Nurand { a, low, high } => nurand(a, low, high, context.seed)?,
            GeneratorSpec::Sequence {
                start,
                global,
                after,
            } => Kind::Sequence(Sequence::new(
                *start,
                *global,
                after.is_some(),
                context,
                used,
            )),
            &GeneratorSpec::Counter {
                start,
                divide,
                modulo,
            } => {
                if divide == 0 || modulo == Some(0) {
                    return Err("divide and modulo must be at least 1".to_owned());
                }
                Kind::Counter {
                    start,
                    divide,
                    modulo: modulo.unwrap_or(u64::MAX),
                }
            }
            &GeneratorSpec::Text { low, high } => Kind::Text(
                Uniform::new_inclusive(low, high)
                    .map_err(|_| format!("low {low} is above high {high}"))?,
            ),
            GeneratorSpec::Uuid => Kind::Uuid,
            GeneratorSpec::Choice { values, weights } => choice(values, weights.as_deref())?,
            GeneratorSpec::Label { prefix, of, upper } => {
                Kind::Label(Label::new(prefix, known(of)?, *upper))
            }
            GeneratorSpec::Permutation { of, low, high } => {
                Kind::Permutation(Permutation::new(known(of)?, *low, *high, context.seed)?)
            }
            GeneratorSpec::Expression { postfix } => {
                Kind::Expression(Expression::new(postfix, context, &position)?)
            }
        };
        Ok(Self(kind))
    }

    /// Draw a value into `values[slot]`. `ordinal` is the number, from 0, of the row or of the repetition.
    pub fn draw(&mut self, random: &mut Random, ordinal: u64, values: &mut [Value], slot: usize) {
        let out = &mut values[slot];
        match &mut self.0 {
            Kind::Uniform(range) => *out = Value::Int(range.sample(random)),
            Kind::Skew(skew) => *out = Value::Int(skew.sample(random)),
            Kind::Zipf { low, ranks } => *out = Value::Int(*low + ranks.sample(random) as i64 - 1),
            Kind::Nurand {
                a,
                range,
                low,
                size,
                c,
            } => {
                let mixed = a.sample(random) | range.sample(random);
                *out = Value::Int((mixed + *c) % *size + *low);
            }
            Kind::Sequence(sequence) => *out = Value::Int(sequence.draw()),
            Kind::Counter {
                start,
                divide,
                modulo,
            } => {
                *out = Value::Int(*start + (ordinal / *divide % *modulo) as i64);
            }
            Kind::Text(length) => {
                let length = length.sample(random) as usize;
                write_text(random, length, out.text_mut());
            }
            Kind::Uuid => write_uuid(random, out.text_mut()),
            Kind::Choice { values, index } => out.clone_from(&values[index.sample(random)]),
            Kind::Label(label) => label.write(values, slot),
            Kind::Permutation(permutation) => permutation.write(values, slot),
            Kind::Expression(expression) => expression.write(values, slot),
        }
    }

    /// The sequence, if it is one.
    pub(crate) fn sequence_mut(&mut self) -> Option<&mut Sequence> {
        match &mut self.0 {
            Kind::Sequence(sequence) => Some(sequence),
            _ => None,
        }
    }
}

fn between(low: i64, high: i64) -> Result<Uniform<i64>, String> {
    Uniform::new_inclusive(low, high).map_err(|_| format!("low {low} is above high {high}"))
}

fn nurand(a: i64, low: i64, high: i64, seed: u64) -> Result<Kind, String> {
    if low < 0 {
        return Err(format!("low {low} is negative"));
    }
    let a_range = between(0, a)?;
    let c = a_range.sample(&mut random(seed, &[a as u64]));
    Ok(Kind::Nurand {
        a: a_range,
        range: between(low, high)?,
        low,
        size: high - low + 1,
        c,
    })
}

fn choice(values: &[Value], weights: Option<&[f64]>) -> Result<Kind, String> {
    let equal = vec![1.0; values.len()];
    let weights = weights.unwrap_or(&equal);
    if weights.len() != values.len() {
        return Err(format!(
            "{} weights for {} values",
            weights.len(),
            values.len()
        ));
    }
    let index = WeightedIndex::new(weights).map_err(|error| format!("weights: {error}"))?;
    Ok(Kind::Choice {
        values: values.to_vec(),
        index,
    })
}
