//! Statements that are stopped when their time is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;

/// Instructions of SQLite's machine between two looks at the clock: far less than a millisecond.
const LOOK_INSTRUCTIONS: i32 = 1000;

/// The time that each statement of one connection has, if there is a limit.
pub(crate) struct StatementCap {
    cap: Option<Duration>,
    started: Instant,
    /// When the statement under way must end, since `started`.
    ends_ns: Arc<AtomicU64>,
}

impl StatementCap {
    pub fn none() -> Self {
        Self {
            cap: None,
            started: Instant::now(),
            ends_ns: Arc::default(),
        }
    }

    /// Change the limit of the statements to come.
    pub fn set(
        &mut self,
        cap: Option<Duration>,
        connection: &mut Connection,
    ) -> rusqlite::Result<()> {
        let was_set = self.cap.is_some();
        self.cap = cap;
        match cap {
            Some(_) if !was_set => {
                let (started, ends_ns) = (self.started, Arc::clone(&self.ends_ns));
                let is_over =
                    move || started.elapsed().as_nanos() as u64 > ends_ns.load(Ordering::Relaxed);
                connection.progress_handler(LOOK_INSTRUCTIONS, Some(is_over))
            }
            None if was_set => connection.progress_handler(0, None::<fn() -> bool>),
            _ => Ok(()),
        }
    }

    /// A statement begins.
    pub fn begin(&self) {
        if let Some(cap) = self.cap {
            let end = self.started.elapsed() + cap;
            self.ends_ns.store(end.as_nanos() as u64, Ordering::Relaxed);
        }
    }
}
