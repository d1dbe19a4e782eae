//! A disk that is slow for a while: the model's clock runs slower than the real one.

use tierwise_device::Nanos;

/// The relation of the model's clock to the real one. Outside a slow phase both run at the same rate.
#[derive(Default)]
pub(crate) struct Slowdown {
    real: Nanos,
    model: Nanos,
    length: Nanos,
    factor: f64,
}

impl Slowdown {
    /// Starts a slow phase of `length` at real time `now`, in place of one that may be under way.
    pub fn start(&mut self, now: Nanos, factor: f64, length: Nanos) {
        *self = Self {
            real: now,
            model: self.to_model(now),
            length,
            factor,
        };
    }

    /// How far the model gets in the slow phase.
    fn model_length(&self) -> Nanos {
        if self.length == 0 {
            return 0;
        }
        (self.length as f64 / self.factor) as Nanos
    }

    pub fn to_model(&self, real: Nanos) -> Nanos {
        let Some(passed) = real.checked_sub(self.real) else {
            return self.model.saturating_sub(self.real - real);
        };
        if passed < self.length {
            return self.model + (passed as f64 / self.factor) as Nanos;
        }
        self.model + self.model_length() + (passed - self.length)
    }

    pub fn to_real(&self, model: Nanos) -> Nanos {
        let Some(passed) = model.checked_sub(self.model) else {
            return self.real.saturating_sub(self.model - model);
        };
        let model_length = self.model_length();
        if passed < model_length {
            // Rounded up: at this time the model has got there.
            return self.real + (passed as f64 * self.factor).ceil() as Nanos;
        }
        self.real + self.length + (passed - model_length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_agree_until_a_slow_phase_and_keep_their_distance_after_it() {
        let mut slowdown = Slowdown::default();
        assert_eq!(slowdown.to_model(7), 7);
        slowdown.start(1_000, 10.0, 500);
        assert_eq!(slowdown.to_model(900), 900);
        assert_eq!(slowdown.to_model(1_100), 1_010);
        assert_eq!(slowdown.to_model(1_500), 1_050);
        assert_eq!(slowdown.to_model(2_000), 1_550);
    }

    #[test]
    fn an_event_is_due_when_the_model_has_got_there() {
        let mut slowdown = Slowdown::default();
        slowdown.start(1_000, 7.3, 600);
        slowdown.start(1_200, 1_000.0, 900);
        for model in (900..3_000).step_by(7) {
            let real = slowdown.to_real(model);
            assert!(
                slowdown.to_model(real) >= model,
                "at {real} the model is not at {model}"
            );
            assert!(
                real <= 1_000 || slowdown.to_model(real - 1) <= model,
                "due too late: {real}"
            );
        }
    }
}
