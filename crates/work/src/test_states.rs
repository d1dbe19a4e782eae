//! States of threads for tests.

use tierwise_recording::{NONE, State, StateKind};

/// On the first core, woken by nobody; between two instants in microseconds.
pub(crate) const fn state(thread: u32, us: (u64, u64), kind: StateKind) -> State {
    State {
        thread,
        start_ns: us.0 * 1000,
        end_ns: us.1 * 1000,
        kind,
        cpu: 0,
        waker: NONE,
        call: NONE,
    }
}
