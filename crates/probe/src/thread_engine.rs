//! A thread for each request in flight, for kernels and containers without a ring.

use std::os::fd::RawFd;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use tierwise_device::{Op, Request};

use crate::aligned_buffers::Buffers;
use crate::probe_engine::{DoneRequest, RequestSupply, request_error};
use crate::{CompletionSink, MeasuredTarget, ProbeError};

/// State of the threads: one lock a request, since a request comes and goes in one step.
struct SharedSupply<'a, 'b, I, S> {
    supply: &'a mut RequestSupply<'b, I>,
    sink: &'a mut S,
    failure: Option<ProbeError>,
}

pub(crate) fn serve_with_threads<I: Iterator<Item = Request> + Send>(
    supply: &mut RequestSupply<'_, I>,
    target: &MeasuredTarget,
    depth: usize,
    block_bytes: usize,
    sink: &mut (impl CompletionSink + Send),
) -> Result<(), ProbeError> {
    let (descriptor, start) = (target.descriptor(), supply.start());
    let shared = Mutex::new(SharedSupply {
        supply,
        sink,
        failure: None,
    });
    thread::scope(|scope| {
        for number in 0..depth {
            let buffers = Buffers::new(1, block_bytes, number as u64);
            let worker = || serve_until_done(&shared, descriptor, start, buffers);
            if let Err(error) = thread::Builder::new().spawn_scoped(scope, worker) {
                let engine = "threads";
                lock(&shared)
                    .failure
                    .get_or_insert(ProbeError::Engine { engine, error });
            }
        }
    });
    let failure = lock(&shared).failure.take();
    failure.map_or(Ok(()), Err)
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared
        .lock()
        .expect("no thread panics while it holds the lock")
}

fn serve_until_done<I: Iterator<Item = Request>, S: CompletionSink>(
    shared: &Mutex<SharedSupply<'_, '_, I, S>>,
    descriptor: RawFd,
    start: Instant,
    mut buffers: Buffers,
) {
    let mut last: Option<(DoneRequest, Result<(), ProbeError>)> = None;
    while let Some((mut done, offset)) = lock(shared).exchange(last.take()) {
        let result = request_system_call(descriptor, &mut buffers, &done, offset);
        done.end_ns = start.elapsed().as_nanos() as u64;
        last = Some((done, request_error(&done, offset, result)));
    }
}

impl<I: Iterator<Item = Request>, S: CompletionSink> SharedSupply<'_, '_, I, S> {
    /// Reports the request that is done and takes the next.
    fn exchange(
        &mut self,
        last: Option<(DoneRequest, Result<(), ProbeError>)>,
    ) -> Option<(DoneRequest, u64)> {
        match last {
            Some((done, Ok(()))) => self.sink.done(&done),
            Some((_, Err(error))) => drop(self.failure.get_or_insert(error)),
            None => {}
        }
        if self.failure.is_some() {
            return None;
        }
        self.supply.next().unwrap_or_else(|error| {
            self.failure = Some(error);
            None
        })
    }
}

/// One system call: its result, or the error number, negative, as the ring gives it.
fn request_system_call(
    descriptor: RawFd,
    buffers: &mut Buffers,
    done: &DoneRequest,
    offset: u64,
) -> i64 {
    let (length, offset) = (done.bytes as usize, offset as libc::off_t);
    if done.op == Op::Write {
        buffers.renew(0, length);
    }
    let address = buffers.address(0).cast();
    // SAFETY: the buffer holds at least `length` bytes and the descriptor is open for as long as threads run.
    let result = unsafe {
        match done.op {
            Op::Read => libc::pread(descriptor, address, length, offset) as i64,
            Op::Write => libc::pwrite(descriptor, address, length, offset) as i64,
            Op::Flush | Op::Discard => i64::from(libc::fdatasync(descriptor)),
        }
    };
    if result < 0 {
        -i64::from(
            std::io::Error::last_os_error()
                .raw_os_error()
                .unwrap_or(libc::EIO),
        )
    } else {
        result
    }
}
