//! Whole numbers whose frequencies follow a bell or fall exponentially, as pgbench defines them.

use rand::RngExt;

use crate::random::Random;

/// A range from which some numbers are drawn more often.
#[derive(Clone, Debug)]
pub(crate) struct Skew {
    shape: Shape,
    low: i64,
    size: f64,
    parameter: f64,
}

/// Shape of the frequencies.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// A bell over the middle, cut off at `parameter` standard deviations.
    Gaussian,
    /// The least the most frequent; the greatest is exp(-`parameter`) times as frequent.
    Exponential,
}

impl Skew {
    /// Over `low..=high`.
    ///
    /// # Errors
    /// Says which bound is impossible.
    pub fn new(shape: Shape, low: i64, high: i64, parameter: f64) -> Result<Self, String> {
        let least = match shape {
            Shape::Gaussian => 2.0,
            Shape::Exponential => f64::MIN_POSITIVE,
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

    pub fn sample(&self, random: &mut Random) -> i64 {
        let place = match self.shape {
            Shape::Gaussian => self.gaussian(random),
            Shape::Exponential => self.exponential(random),
        };
        self.low + (self.size * place).min(self.size - 1.0) as i64
    }

    /// From 0 to 1, by Box and Muller; values outside are drawn again.
    fn gaussian(&self, random: &mut Random) -> f64 {
        loop {
            let (radius, angle): (f64, f64) = (random.random(), random.random());
            let deviation =
                (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).sin();
            if deviation.abs() < self.parameter {
                return (deviation + self.parameter) / (2.0 * self.parameter);
            }
        }
    }

    fn exponential(&self, random: &mut Random) -> f64 {
        let cut = (-self.parameter).exp();
        let uniform: f64 = random.random();
        -(cut + (1.0 - cut) * (1.0 - uniform)).ln() / self.parameter
    }
}
