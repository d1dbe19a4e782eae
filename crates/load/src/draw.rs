//! Generators of values, deterministic by seed.

use std::fmt::Write;

use rand::distr::uniform::Uniform;
use rand::distr::weighted::WeightedIndex;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::value::Value;
use crate::workload::GeneratorSpec;

/// The source of randomness: fast, and the same on every machine.
pub type Random = Xoshiro256PlusPlus;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const BITS_PER_CHARACTER: usize = 6;
const CHARACTERS_PER_WORD: usize = 64 / BITS_PER_CHARACTER;

/// An independent stream for each `purpose`, such as a client and the number of its run.
pub fn random(seed: u64, purpose: &[u64]) -> Random {
    let mixed = purpose
        .iter()
        .fold(seed, |state, part| mix(mix(state) ^ part));
    Random::seed_from_u64(mixed)
}

/// The finaliser of splitmix64: every bit of the input changes half the bits of the output.
fn mix(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Who draws.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Seed of the load.
    pub seed: u64,
    /// Which client, from 0.
    pub client: u64,
    /// Number of clients.
    pub clients: u64,
}

/// A generator ready to draw.
#[derive(Clone, Debug)]
pub struct Generator(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Uniform(Uniform<i64>),
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
    Sequence {
        next: i64,
        step: i64,
    },
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
}

impl Generator {
    /// Prepare to draw. `used` is the greatest number that a sequence finds in use, if it asked.
    ///
    /// # Errors
    /// Says which bound is impossible.
    pub fn new(spec: &GeneratorSpec, context: Context, used: Option<i64>) -> Result<Self, String> {
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
            &GeneratorSpec::Nurand { a, low, high } => nurand(a, low, high, context.seed)?,
            &GeneratorSpec::Sequence { start, global, .. } => {
                sequence(start, global, context, used)
            }
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
        };
        Ok(Self(kind))
    }

    /// Draw a value into `out`. `ordinal` is the number, from 0, of the row or of the repetition.
    pub fn draw(&mut self, random: &mut Random, ordinal: u64, out: &mut Value) {
        match &mut self.0 {
            Kind::Uniform(range) => *out = Value::Int(range.sample(random)),
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
            Kind::Sequence { next, step } => {
                *out = Value::Int(*next);
                *next += *step;
            }
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

fn sequence(start: i64, global: bool, context: Context, used: Option<i64>) -> Kind {
    let first = used.map_or(start, |used| start.max(used + 1));
    if global {
        Kind::Sequence {
            next: first + context.client as i64,
            step: context.clients as i64,
        }
    } else {
        Kind::Sequence {
            next: first,
            step: 1,
        }
    }
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

fn write_text(random: &mut Random, length: usize, out: &mut String) {
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

fn write_uuid(random: &mut Random, out: &mut String) {
    let (high, low) = (random.next_u64(), random.next_u64());
    let (a, b, c) = (high >> 32, high >> 16 & 0xffff, high & 0x0fff);
    let (d, e) = (low >> 48 & 0x3fff | 0x8000, low & 0xffff_ffff_ffff);
    write!(out, "{a:08x}-{b:04x}-4{c:03x}-{d:04x}-{e:012x}").expect("a String takes any text");
}
