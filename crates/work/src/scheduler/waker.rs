//! Who wakes a thread.

use tierwise_recording::NONE;

/// Kinds of wakers.
pub(crate) const WAKERS: usize = 3;

/// Who wakes a thread, as far as the chance of preemption depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waker {
    /// A thread on another core, or one that has left this one.
    Another,
    /// Who runs on the core that the woken thread wants.
    Runner,
    /// A device or a timer: an interrupt, or a thread of the kernel.
    Kernel,
}

impl Waker {
    /// The thread of a number, where another runs on the wanted core.
    pub(crate) fn of(by: u32, runs: u32) -> Self {
        match by {
            NONE => Self::Kernel,
            _ if by == runs => Self::Runner,
            _ => Self::Another,
        }
    }
}
