//! Generators of values, deterministic by seed.

use std::fmt::Write;

use rand::distr::uniform::Uniform;
use rand::distr::weighted::WeightedIndex;
use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;
use tierwise_device::random::{GOLDEN_GAMMA, mix_bits};

use crate::drawn_value::DrawnValue;
use crate::expression::{Expression, Label};
use crate::workload::GeneratorSpec;

/// A generator ready to draw.
#[derive(Clone, Debug)]
pub struct ValueGenerator(GeneratorKind);

#[derive(Clone, Debug)]
enum GeneratorKind {
    Uniform(Uniform<i64>),
    Skew(SkewedRange),
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
    Sequence(SequenceGenerator),
    Counter {
        start: i64,
        divide: u64,
        modulo: u64,
    },
    Text(Uniform<u64>),
    Uuid,
    Choice {
        values: Vec<DrawnValue>,
        index: WeightedIndex<f64>,
    },
    Label(Label),
    Permutation(Permutation),
    Expression(Expression),
}

impl ValueGenerator {
    /// Prepare to draw. `used` is the greatest number that a sequence finds in use, if it asked; `position`
    /// tells where among the values that one of another name stands.
    ///
    /// # Errors
    /// Says which bound is impossible, or which name is unknown.
    pub fn new(
        spec: &GeneratorSpec,
        context: DrawingClient,
        used: Option<i64>,
        position: impl Fn(&str) -> Option<usize>,
    ) -> Result<Self, String> {
        let known =
            |of: &str| position(of).ok_or_else(|| format!("of names {of:?}, which is unknown"));
        let kind = match spec {
            &GeneratorSpec::Uniform { low, high } => {
                GeneratorKind::Uniform(uniform_generator(low, high)?)
            }
            &GeneratorSpec::Zipf {
                low,
                high,
                exponent,
            } => {
                let size = uniform_generator(low, high).map(|_| (high - low + 1) as f64)?;
                let ranks = Zipf::new(size, exponent)
                    .map_err(|error| format!("exponent {exponent}: {error}"))?;
                GeneratorKind::Zipf { low, ranks }
            }
            &GeneratorSpec::Gaussian {
                low,
                high,
                parameter,
            } => GeneratorKind::Skew(SkewedRange::new(SkewShape::Gaussian, low, high, parameter)?),
            &GeneratorSpec::Exponential {
                low,
                high,
                parameter,
            } => GeneratorKind::Skew(SkewedRange::new(
                SkewShape::Exponential,
                low,
                high,
                parameter,
            )?),
            &GeneratorSpec::Nurand { a, low, high } => {
                nurand_generator(a, low, high, context.seed)?
            }
            GeneratorSpec::Sequence {
                start,
                global,
                after,
            } => GeneratorKind::Sequence(SequenceGenerator::new(
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
                GeneratorKind::Counter {
                    start,
                    divide,
                    modulo: modulo.unwrap_or(u64::MAX),
                }
            }
            &GeneratorSpec::Text { low, high } => GeneratorKind::Text(
                Uniform::new_inclusive(low, high)
                    .map_err(|_| format!("low {low} is above high {high}"))?,
            ),
            GeneratorSpec::Uuid => GeneratorKind::Uuid,
            GeneratorSpec::Choice { values, weights } => {
                choice_generator(values, weights.as_deref())?
            }
            GeneratorSpec::Label { prefix, of, upper } => {
                GeneratorKind::Label(Label::new(prefix, known(of)?, *upper))
            }
            GeneratorSpec::Permutation { of, low, high } => {
                GeneratorKind::Permutation(Permutation::new(known(of)?, *low, *high, context.seed)?)
            }
            GeneratorSpec::Expression { postfix } => {
                GeneratorKind::Expression(Expression::new(postfix, context, &position)?)
            }
        };
        Ok(Self(kind))
    }

    /// Draw a value into `values[slot]`. `ordinal` is the number, from 0, of the row or of the repetition.
    pub fn draw(
        &mut self,
        random: &mut RandomSource,
        ordinal: u64,
        values: &mut [DrawnValue],
        slot: usize,
    ) {
        let out = &mut values[slot];
        match &mut self.0 {
            GeneratorKind::Uniform(range) => *out = DrawnValue::Int(range.sample(random)),
            GeneratorKind::Skew(skew) => *out = DrawnValue::Int(skew.sample(random)),
            GeneratorKind::Zipf { low, ranks } => {
                *out = DrawnValue::Int(*low + ranks.sample(random) as i64 - 1)
            }
            GeneratorKind::Nurand {
                a,
                range,
                low,
                size,
                c,
            } => {
                let mixed = a.sample(random) | range.sample(random);
                *out = DrawnValue::Int((mixed + *c) % *size + *low);
            }
            GeneratorKind::Sequence(sequence) => *out = DrawnValue::Int(sequence.draw()),
            GeneratorKind::Counter {
                start,
                divide,
                modulo,
            } => {
                *out = DrawnValue::Int(*start + (ordinal / *divide % *modulo) as i64);
            }
            GeneratorKind::Text(length) => {
                let length = length.sample(random) as usize;
                write_random_text(random, length, out.text_mut());
            }
            GeneratorKind::Uuid => write_uuid(random, out.text_mut()),
            GeneratorKind::Choice { values, index } => {
                out.clone_from(&values[index.sample(random)])
            }
            GeneratorKind::Label(label) => label.write(values, slot),
            GeneratorKind::Permutation(permutation) => permutation.write(values, slot),
            GeneratorKind::Expression(expression) => expression.write(values, slot),
        }
    }

    /// The sequence, if it is one.
    pub(crate) fn sequence_mut(&mut self) -> Option<&mut SequenceGenerator> {
        match &mut self.0 {
            GeneratorKind::Sequence(sequence) => Some(sequence),
            _ => None,
        }
    }
}

fn uniform_generator(low: i64, high: i64) -> Result<Uniform<i64>, String> {
    Uniform::new_inclusive(low, high).map_err(|_| format!("low {low} is above high {high}"))
}

fn nurand_generator(a: i64, low: i64, high: i64, seed: u64) -> Result<GeneratorKind, String> {
    if low < 0 {
        return Err(format!("low {low} is negative"));
    }
    let a_range = uniform_generator(0, a)?;
    let c = a_range.sample(&mut random_stream(seed, &[a as u64]));
    Ok(GeneratorKind::Nurand {
        a: a_range,
        range: uniform_generator(low, high)?,
        low,
        size: high - low + 1,
        c,
    })
}

fn choice_generator(
    values: &[DrawnValue],
    weights: Option<&[f64]>,
) -> Result<GeneratorKind, String> {
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
    Ok(GeneratorKind::Choice {
        values: values.to_vec(),
        index,
    })
}

// Random numbers that are the same on every machine, and random texts.

/// The source of randomness: fast, and the same on every machine.
pub type RandomSource = Xoshiro256PlusPlus;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const BITS_PER_CHARACTER: usize = 6;
const CHARACTERS_PER_WORD: usize = 64 / BITS_PER_CHARACTER;

/// An independent stream for each `purpose`, such as a client and the number of its run.
pub fn random_stream(seed: u64, purpose: &[u64]) -> RandomSource {
    let step = |state: u64| mix_bits(state.wrapping_add(GOLDEN_GAMMA));
    let mixed = purpose
        .iter()
        .fold(seed, |state, part| step(step(state) ^ part));
    RandomSource::seed_from_u64(mixed)
}

/// Add this number of letters, digits, `-` and `_`.
pub(crate) fn write_random_text(random: &mut RandomSource, length: usize, out: &mut String) {
    let mut left = length;
    while left > 0 {
        let mut word = random.next_u64();
        for _ in 0..left.min(CHARACTERS_PER_WORD) {
            out.push(ALPHABET[(word % ALPHABET.len() as u64) as usize] as char);
            word >>= BITS_PER_CHARACTER;
        }
        left = left.saturating_sub(CHARACTERS_PER_WORD);
    }
}

/// Add a random UUID, version 4.
pub(crate) fn write_uuid(random: &mut RandomSource, out: &mut String) {
    let (high, low) = (random.next_u64(), random.next_u64());
    let (a, b, c) = (high >> 32, high >> 16 & 0xffff, high & 0x0fff);
    let (d, e) = (low >> 48 & 0x3fff | 0x8000, low & 0xffff_ffff_ffff);
    write!(out, "{a:08x}-{b:04x}-4{c:03x}-{d:04x}-{e:012x}").expect("a String takes any text");
}

// Whole numbers whose frequencies follow a bell or fall exponentially, as pgbench defines them.

/// A range from which some numbers are drawn more often.
#[derive(Clone, Debug)]
pub(crate) struct SkewedRange {
    shape: SkewShape,
    low: i64,
    size: f64,
    parameter: f64,
}

/// Shape of the frequencies.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SkewShape {
    /// A bell over the middle, cut off at `parameter` standard deviations.
    Gaussian,
    /// The least the most frequent; the greatest is exp(-`parameter`) times as frequent.
    Exponential,
}

impl SkewedRange {
    /// Over `low..=high`.
    ///
    /// # Errors
    /// Says which bound is impossible.
    pub fn new(shape: SkewShape, low: i64, high: i64, parameter: f64) -> Result<Self, String> {
        let least = match shape {
            SkewShape::Gaussian => 2.0,
            SkewShape::Exponential => f64::MIN_POSITIVE,
        };
        if low > high {
            return Err(format!("low {low} is above high {high}"));
        }
        if !(least..f64::INFINITY).contains(&parameter) {
            return Err(format!("parameter {parameter} is out of range"));
        }
        let size = high.abs_diff(low) as f64 + 1.0;
        Ok(Self {
            shape,
            low,
            size,
            parameter,
        })
    }

    pub fn sample(&self, random: &mut RandomSource) -> i64 {
        let place = match self.shape {
            SkewShape::Gaussian => self.gaussian(random),
            SkewShape::Exponential => self.exponential(random),
        };
        self.low + (self.size * place).min(self.size - 1.0) as i64
    }

    /// From 0 to 1, by Box and Muller; values outside are drawn again.
    fn gaussian(&self, random: &mut RandomSource) -> f64 {
        loop {
            let (radius, angle): (f64, f64) = (random.random(), random.random());
            let deviation =
                (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).sin();
            if deviation.abs() < self.parameter {
                return (deviation + self.parameter) / (2.0 * self.parameter);
            }
        }
    }

    fn exponential(&self, random: &mut RandomSource) -> f64 {
        let cut = (-self.parameter).exp();
        let uniform: f64 = random.random();
        -(cut + (1.0 - cut) * (1.0 - uniform)).ln() / self.parameter
    }
}

// The numbers of a range in random order, each once.

const ROUNDS: usize = 4;

/// A permutation of a range, the same for all clients, that needs no memory for the range.
///
/// A Feistel network permutes the least even power of two that holds the range; numbers outside the range are
/// permuted again until they fall inside (M. Luby, C. Rackoff, "How to construct pseudorandom permutations",
/// 1988; J. Black, P. Rogaway, "Ciphers with arbitrary finite domains", 2002).
#[derive(Clone, Debug)]
pub(crate) struct Permutation {
    of: usize,
    low: i64,
    size: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// Of `low..=high`, by the seed of the load.
    ///
    /// # Errors
    /// If `low` is above `high`.
    pub fn new(of: usize, low: i64, high: i64, seed: u64) -> Result<Self, String> {
        if low > high {
            return Err(format!("low {low} is above high {high}"));
        }
        let size = high.abs_diff(low) + 1;
        let bits = u64::BITS - (size - 1).leading_zeros();
        let mut random = random_stream(seed, &[low as u64, high as u64]);
        Ok(Self {
            of,
            low,
            size,
            half_bits: bits.div_ceil(2).max(1),
            keys: std::array::from_fn(|_| random.next_u64()),
        })
    }

    /// The number in the place that another value names; consecutive places give each number once.
    pub fn write(&self, values: &mut [DrawnValue], slot: usize) {
        let place = values[self.of].as_int().unwrap_or(0);
        let mut number = place.rem_euclid(self.size as i64) as u64;
        loop {
            number = self.permute(number);
            if number < self.size {
                break;
            }
        }
        values[slot] = DrawnValue::Int(self.low + number as i64);
    }

    fn permute(&self, number: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let halves = (number >> self.half_bits, number & mask);
        let (left, right) = self.keys.iter().fold(halves, |(left, right), key| {
            (right, left ^ (mix_bits(key ^ right) & mask))
        });
        left << self.half_bits | right
    }
}

// Numbers in order.

/// A sequence ready to draw.
#[derive(Clone, Debug)]
pub(crate) struct SequenceGenerator {
    first: i64,
    next: i64,
    /// The next number when the transaction began.
    marked: i64,
    step: i64,
    restarts: bool,
}

impl SequenceGenerator {
    /// Begins at `start`, or after `used` if that is greater. With n clients, each draws every n-th number of
    /// a `global` sequence. A sequence of a client's own without a query begins anew in each lap.
    pub fn new(
        start: i64,
        global: bool,
        asks: bool,
        context: DrawingClient,
        used: Option<i64>,
    ) -> Self {
        let start = used.map_or(start, |used| start.max(used + 1));
        let (offset, step) = if global {
            (context.client as i64, context.clients as i64)
        } else {
            (0, 1)
        };
        Self {
            first: start + offset,
            next: start + offset,
            marked: start + offset,
            step,
            restarts: !asks && !global,
        }
    }

    pub fn draw(&mut self) -> i64 {
        let drawn = self.next;
        self.next += self.step;
        drawn
    }

    /// Begin anew, unless the sequence goes on.
    pub fn restart(&mut self) {
        if self.restarts {
            self.next = self.first;
        }
    }

    /// Remember where a transaction began.
    pub fn mark(&mut self) {
        self.marked = self.next;
    }

    /// Go back to where the transaction began, so that sequences that number objects have no gaps.
    pub fn rewind(&mut self) {
        if self.restarts {
            self.next = self.marked;
        }
    }
}

// The client that draws values.

/// The client that draws.
#[derive(Clone, Copy, Debug)]
pub struct DrawingClient {
    /// Seed of the load.
    pub seed: u64,
    /// Which client, from 0.
    pub client: u64,
    /// Number of clients.
    pub clients: u64,
}
