//! One CPU burst, summed until a step ends it.

use crate::transactions::clients::ClientTime;
use crate::{Step, WarmupCost};

/// Time on a core.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CpuBurst {
    /// Time on a warm core.
    pub(crate) cpu_ns: f64,
    /// Of a client: how long it had been awake; see [`Step::Cpu`].
    head_start_ns: u64,
}

impl CpuBurst {
    /// A client's CPU burst between two turns.
    pub(crate) fn of_client(part: ClientTime, cost: &WarmupCost) -> Self {
        let cold = part.cold * cost.share(true);
        Self {
            cpu_ns: cost.warm(part.cpu_ns as f64, cold).0,
            head_start_ns: part.head_start_ns,
        }
    }

    /// The collected time.
    pub(crate) fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// Writes it as steps, of the client or of the server.
    pub(crate) fn write(&self, steps: &mut Vec<Step>, client: bool) {
        let mut left_ns = self.cpu_ns.round() as u64;
        while left_ns > 0 {
            let time_ns = u32::try_from(left_ns).unwrap_or(u32::MAX);
            steps.push(Step::Cpu {
                time_ns,
                client,
                head_start_ns: u32::try_from(self.head_start_ns).unwrap_or(u32::MAX),
            });
            left_ns -= u64::from(time_ns);
        }
    }
}
