//! Wakers of threads.

use tierwise_recording::NONE;

/// Number of waker kinds.
pub(crate) const WAKERS: usize = 3;

/// The waker of a thread, as far as the chance of preemption depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waker {
    /// A thread on another core, or one that has left this one.
    Another,
    /// The thread that runs on the woken thread's target core.
    Runner,
    /// A device or a timer: an interrupt, or a thread of the kernel.
    Kernel,
}

impl Waker {
    /// The kind of the waker `by`, while the thread `runs` runs on the target core.
    pub(crate) fn of(by: u32, runs: u32) -> Self {
        match by {
            NONE => Self::Kernel,
            _ if by == runs => Self::Runner,
            _ => Self::Another,
        }
    }
}
