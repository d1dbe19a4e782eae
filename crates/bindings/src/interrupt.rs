//! Long work outside the interpreter that Ctrl-C ends.

use std::io;
use std::panic::{self, AssertUnwindSafe, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::convert::tierwise_error;

/// How often Python gets to see a Ctrl-C while Rust works.
const SIGNAL_POLL: Duration = Duration::from_millis(50);

/// Work on another thread, without the interpreter's lock, until done or interrupted; `stop` must end it soon.
pub fn run_interruptibly<T: Send>(
    py: Python<'_>,
    stop: impl Fn(),
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    run_with_progress(py, || Ok(()), stop, work)
}

/// The same; `tell` is called repeatedly meanwhile, and its exceptions end the work too.
pub fn run_with_progress<T: Send>(
    py: Python<'_>,
    mut tell: impl FnMut() -> PyResult<()>,
    stop: impl Fn(),
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let (sender, receiver) = sync_channel::<()>(0);
    let receiver = Mutex::new(receiver);
    let (result, signal) = thread::scope(|scope| {
        let work = move || {
            let _until_done = sender;
            work()
        };
        let worker = thread::Builder::new().spawn_scoped(scope, work);
        let worker = worker.map_err(|error| thread_start_error(py, &error))?;
        let poll = || {
            receiver
                .lock()
                .expect("only this thread locks")
                .recv_timeout(SIGNAL_POLL)
        };
        let mut signal = Ok(());
        while py.detach(poll) == Err(RecvTimeoutError::Timeout) {
            if signal.is_ok() {
                signal = (py.check_signals().and_then(|()| tell())).inspect_err(|_| stop());
            }
        }
        let result = py.detach(|| worker.join().expect("the work does not panic"));
        Ok::<_, PyErr>((result, signal))
    })?;
    signal.map(|()| result)
}

/// Work that a signal does not wait for, such as reading a file: its thread then ends by itself, or with the process.
pub fn run_abandonably<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, receiver) = sync_channel(1);
    let worker = thread::Builder::new().spawn(move || {
        let _nobody_waits = sender.send(work());
    });
    let worker = worker.map_err(|error| thread_start_error(py, &error))?;
    let receiver = Mutex::new(receiver);
    let poll = || {
        receiver
            .lock()
            .expect("only this thread locks")
            .recv_timeout(SIGNAL_POLL)
    };
    loop {
        match py.detach(poll) {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                let panic = worker.join().expect_err("only a panic sends nothing");
                resume_unwind(panic)
            }
        }
    }
}

fn thread_start_error(py: Python<'_>, error: &io::Error) -> PyErr {
    let fix = "end other programs, or raise the limits of threads and memory";
    tierwise_error(py, &format!("cannot start a thread: {error}"), fix)
}

// Reports a defect of tierwise like any error: on one line, with its place in the source.

/// Number of calls under way whose panics are reported so.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);
/// Their first panic: later ones on other threads only pass it on.
static FIRST: Mutex<Option<String>> = Mutex::new(None);

/// Runs a closure; its panic, on any thread, becomes the exception that a user sees.
pub fn with_panics_reported<T>(py: Python<'_>, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(keep_panics);
    UNDER_WAY.fetch_add(1, Ordering::SeqCst);
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    UNDER_WAY.fetch_sub(1, Ordering::SeqCst);
    done.unwrap_or_else(|_| {
        let panic = first_panic().take().unwrap_or_default();
        let message = format!("a defect of tierwise: {panic}");
        Err(tierwise_error(
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
            _ => _ = first_panic().get_or_insert_with(|| panic.to_string().replace('\n', " ")),
        }
    }));
}

fn first_panic() -> MutexGuard<'static, Option<String>> {
    FIRST.lock().unwrap_or_else(PoisonError::into_inner)
}
