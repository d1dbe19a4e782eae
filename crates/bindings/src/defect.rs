//! Reports a defect of tierwise like any error: on one line, with its place in the source.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use pyo3::prelude::*;

use crate::convert::user_error;

/// Number of calls under way whose panics are reported so.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);
/// Their first panic: later ones on other threads only pass it on.
static FIRST: Mutex<Option<String>> = Mutex::new(None);

/// Runs a closure; its panic, on any thread, becomes the exception that a user sees.
pub fn told<T>(py: Python<'_>, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(keep_panics);
    UNDER_WAY.fetch_add(1, Ordering::SeqCst);
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    UNDER_WAY.fetch_sub(1, Ordering::SeqCst);
    done.unwrap_or_else(|_| {
        let panic = first().take().unwrap_or_default();
        let message = format!("a defect of tierwise: {panic}");
        Err(user_error(
            py,
            &message,
            "report it, with the recording if you may share it",
        ))
    })
}

/// Keeps panics of calls under way instead of printing them.
fn keep_panics() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        match UNDER_WAY.load(Ordering::SeqCst) {
            0 => usual(panic),
            _ => _ = first().get_or_insert_with(|| panic.to_string().replace('\n', " ")),
        }
    }));
}

fn first() -> MutexGuard<'static, Option<String>> {
    FIRST.lock().unwrap_or_else(PoisonError::into_inner)
}
