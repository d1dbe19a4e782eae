//! One thread and a ring, as in fio and CrystalDiskMark's successor on Linux.

use std::io::ErrorKind;

use io_uring::{IoUring, opcode, squeue, types};
use tierwise_device::{Op, Request};

use crate::aligned_buffers::Buffers;
use crate::probe_engine::{DoneRequest, RequestSupply, request_error};
use crate::{CompletionSink, MeasuredTarget, ProbeError};

/// Whether the kernel provides a ring to this process.
pub(crate) fn is_uring_available() -> bool {
    IoUring::new(2).is_ok()
}

pub(crate) fn serve_with_uring<I: Iterator<Item = Request>>(
    supply: &mut RequestSupply<'_, I>,
    target: &MeasuredTarget,
    depth: usize,
    block_bytes: usize,
    sink: &mut impl CompletionSink,
) -> Result<(), ProbeError> {
    let ring = new_ring(depth.next_power_of_two() as u32).map_err(uring_error)?;
    let mut flight = RequestsInFlight {
        ring,
        descriptor: types::Fd(target.descriptor()),
        buffers: Buffers::new(depth, block_bytes, depth as u64),
        slots: vec![None; depth],
        free: (0..depth).rev().collect(),
    };
    let served = flight.serve(supply, sink);
    flight.wait_for_all()?;
    served
}

/// A ring whose completions do not interrupt the thread, where the kernel (6.1) knows such; as fio has it.
fn new_ring(entries: u32) -> std::io::Result<IoUring> {
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .build(entries)
        .or_else(|_| IoUring::new(entries))
}

fn uring_error(error: std::io::Error) -> ProbeError {
    ProbeError::Engine {
        engine: "io_uring",
        error,
    }
}

/// Requests in flight, each with a slot and a buffer of its own.
struct RequestsInFlight {
    ring: IoUring,
    descriptor: types::Fd,
    buffers: Buffers,
    slots: Vec<Option<(DoneRequest, u64)>>,
    free: Vec<usize>,
}

impl RequestsInFlight {
    fn serve<I: Iterator<Item = Request>>(
        &mut self,
        supply: &mut RequestSupply<'_, I>,
        sink: &mut impl CompletionSink,
    ) -> Result<(), ProbeError> {
        loop {
            while !self.free.is_empty() {
                let Some((done, offset)) = supply.next()? else {
                    break;
                };
                self.push(done, offset)?;
            }
            if self.in_flight() == 0 {
                return Ok(());
            }
            self.enter(1)?;
            let now_ns = supply.now_ns();
            self.reap(now_ns, sink)?;
        }
    }

    /// Hands one request over at once, as benchmarks do: the device starts on it while the next is made.
    fn push(&mut self, done: DoneRequest, offset: u64) -> Result<(), ProbeError> {
        let slot = self.free.pop().expect("the caller saw a free slot");
        let entry = self.entry(slot, &done, offset).user_data(slot as u64);
        self.slots[slot] = Some((done, offset));
        // SAFETY: the buffer and the descriptor outlive the request: `serve` waits for all before it returns.
        unsafe { self.ring.submission().push(&entry) }
            .expect("the ring has an entry for each slot");
        self.enter(0)
    }

    fn entry(&mut self, slot: usize, done: &DoneRequest, offset: u64) -> squeue::Entry {
        let bytes = done.bytes as u32;
        match done.op {
            Op::Read => opcode::Read::new(self.descriptor, self.buffers.address(slot), bytes)
                .offset(offset)
                .build(),
            Op::Write => {
                self.buffers.renew(slot, bytes as usize);
                opcode::Write::new(self.descriptor, self.buffers.address(slot), bytes)
                    .offset(offset)
                    .build()
            }
            Op::Flush | Op::Discard => opcode::Fsync::new(self.descriptor)
                .flags(types::FsyncFlags::DATASYNC)
                .build(),
        }
    }

    fn reap(&mut self, now_ns: u64, sink: &mut impl CompletionSink) -> Result<(), ProbeError> {
        let mut first_error = Ok(());
        for completion in self.ring.completion() {
            let slot = completion.user_data() as usize;
            let (mut done, offset) = self.slots[slot]
                .take()
                .expect("each request completes once");
            self.free.push(slot);
            done.end_ns = now_ns;
            match request_error(&done, offset, i64::from(completion.result())) {
                Ok(()) => sink.done(&done),
                Err(error) => first_error = first_error.and(Err(error)),
            }
        }
        first_error
    }

    /// Hands over what was pushed and waits for completions; a signal to this thread is no reason to end.
    fn enter(&self, wait_for: usize) -> Result<(), ProbeError> {
        loop {
            match self.ring.submit_and_wait(wait_for) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => return result.map(drop).map_err(uring_error),
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Lets the kernel finish with the buffers; results of the requests no longer count.
    fn wait_for_all(&mut self) -> Result<(), ProbeError> {
        while self.in_flight() > 0 {
            self.enter(1)?;
            for completion in self.ring.completion() {
                let slot = completion.user_data() as usize;
                self.slots[slot] = None;
                self.free.push(slot);
            }
        }
        Ok(())
    }
}
