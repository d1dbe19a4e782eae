//! One CPU burst, summed until a step ends it.

use crate::Step;
use crate::index::rows::LEAST_CPU_SHARE;
use crate::transactions::clients::ClientTime;

/// Time on a core.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CpuBurst {
    pub(crate) cpu_ns: f64,
    /// What recording took on top.
    pub(crate) traced_ns: f64,
    /// How long the thread had been off its core before.
    pub(crate) after_wait_ns: u64,
    /// The core that it ran on last.
    pub(crate) core: u16,
    /// Of a client; see [`Step::Cpu`].
    head_start_ns: u64,
}

impl CpuBurst {
    /// What a client did between two turns; the events that tell of a wait took so much.
    pub(crate) fn of_client(part: ClientTime, events_ns: f64) -> Self {
        let ran_ns = part.cpu_ns as f64;
        let events_ns = if part.after_wait_ns > 0 {
            events_ns
        } else {
            0.0
        };
        let traced_ns = events_ns.min(ran_ns * (1.0 - LEAST_CPU_SHARE));
        Self {
            cpu_ns: ran_ns - traced_ns,
            traced_ns,
            after_wait_ns: part.after_wait_ns,
            core: part.core,
            head_start_ns: part.head_start_ns,
        }
    }

    /// What was gathered; the next begins on the same core.
    pub(crate) fn take(&mut self) -> Self {
        let next = Self {
            core: self.core,
            ..Self::default()
        };
        std::mem::replace(self, next)
    }

    /// Writes it as steps, of the client or of the server.
    pub(crate) fn write(&self, steps: &mut Vec<Step>, client: bool) {
        let mut left_ns = self.cpu_ns.round() as u64;
        let mut after_wait_ns = u32::try_from(self.after_wait_ns).unwrap_or(u32::MAX);
        let mut traced_ns = self.traced_ns.round() as u32;
        while left_ns > 0 {
            let time_ns = u32::try_from(left_ns).unwrap_or(u32::MAX);
            steps.push(Step::Cpu {
                time_ns,
                after_wait_ns,
                client,
                traced_ns,
                core: self.core,
                head_start_ns: u32::try_from(self.head_start_ns).unwrap_or(u32::MAX),
            });
            left_ns -= u64::from(time_ns);
            (after_wait_ns, traced_ns) = (0, 0);
        }
    }
}
