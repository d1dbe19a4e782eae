//! Long work outside the interpreter that Ctrl-C ends.

use std::panic::resume_unwind;
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

/// How often Python gets to see a Ctrl-C while Rust works.
const SIGNAL_POLL: Duration = Duration::from_millis(50);

/// Work on another thread, without the interpreter's lock, until done or interrupted; `stop` must end it soon.
pub fn interruptible<T: Send>(
    py: Python<'_>,
    stop: impl Fn(),
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    watched(py, || Ok(()), stop, work)
}

/// The same; `tell` is called repeatedly meanwhile, and its exceptions end the work too.
pub fn watched<T: Send>(
    py: Python<'_>,
    mut tell: impl FnMut() -> PyResult<()>,
    stop: impl Fn(),
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let (sender, receiver) = sync_channel::<()>(0);
    let receiver = Mutex::new(receiver);
    let (result, signal) = thread::scope(|scope| {
        let worker = scope.spawn(move || {
            let _until_done = sender;
            work()
        });
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
        (
            py.detach(|| worker.join().expect("the work does not panic")),
            signal,
        )
    });
    signal.map(|()| result)
}

/// Work that a signal does not wait for, such as reading a file: its thread then ends by itself, or with the process.
pub fn abandonable<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, receiver) = sync_channel(1);
    let worker = thread::spawn(move || {
        let _nobody_waits = sender.send(work());
    });
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
