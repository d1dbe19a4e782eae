//! Service times of the model compared with those measured for the same requests.

use serde::Serialize;
use tierwise_device::Nanos;

/// The model's error against the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Mean of the measured service times, in microseconds.
    pub measured_mean_us: f64,
    /// Mean of the model's, in microseconds.
    pub model_mean_us: f64,
    /// Root mean square horizontal distance between the two distributions, as a share of the measured mean:
    /// the demerit figure of Ruemmler and Wilkes, IEEE Computer 27(3), 1994.
    pub demerit: f64,
    /// Root mean square difference request by request, as a share of the measured mean.
    pub each: f64,
}

/// Pairs of service times, measured and modelled.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    measured: Vec<Nanos>,
    model: Vec<Nanos>,
}

impl Pairs {
    pub(crate) fn record(&mut self, measured_ns: Nanos, model_ns: Nanos) {
        self.measured.push(measured_ns);
        self.model.push(model_ns);
    }

    /// The comparison, or `None` without pairs or if every measured time is 0.
    pub(crate) fn comparison(&mut self) -> Option<Comparison> {
        let measured_mean_ns = mean(&self.measured);
        if self.measured.is_empty() || measured_mean_ns == 0.0 {
            return None;
        }
        let each = distance(&self.measured, &self.model);
        Some(Comparison {
            measured_mean_us: measured_mean_ns / 1e3,
            model_mean_us: mean(&self.model) / 1e3,
            demerit: demerit(&mut self.measured, &mut self.model),
            each,
        })
    }
}

/// The demerit figure of two equally long lists of times, neither empty; sorts both.
pub fn demerit(measured: &mut [Nanos], model: &mut [Nanos]) -> f64 {
    measured.sort_unstable();
    model.sort_unstable();
    distance(measured, model)
}

/// Root mean square difference, pair by pair, as a share of the first's mean.
fn distance(measured: &[Nanos], model: &[Nanos]) -> f64 {
    let squares = measured
        .iter()
        .zip(model)
        .map(|(&one, &other)| (one as f64 - other as f64).powi(2));
    (squares.sum::<f64>() / measured.len() as f64).sqrt() / mean(measured)
}

fn mean(times: &[Nanos]) -> f64 {
    times.iter().map(|&time| time as f64).sum::<f64>() / times.len() as f64
}
