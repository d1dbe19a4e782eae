//! How requests come from the kernel and answers go back: one file for each way, behind one interface.
//!
//! A transport knows nothing of models and times. One thread owns it.

mod command_ring;
pub(crate) mod fuse;
pub(crate) mod fuse_device;
pub(crate) mod fuse_uring;
pub(crate) mod ublk;
pub(crate) mod ublk_control;
mod waker;

use std::io;

use serde::{Deserialize, Serialize};
use tierwise_device::Nanos;
pub(crate) use waker::Waker;

/// The ways that a request can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TransportKind {
    /// `read(2)` and `write(2)` of `/dev/fuse`, one call each a request; on every kernel.
    Fuse,
    /// FUSE over `io_uring`, since Linux 6.14: requests and answers in batches.
    FuseIoUring,
    /// Block devices of the server itself, since Linux 6.5: in batches too, and without FUSE and loop devices.
    Ublk,
}

/// Which request an answer is for; the transport chooses the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestTag(pub u64);

/// A request as it arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IncomingRequest<'a> {
    pub tag: RequestTag,
    pub partition: usize,
    /// The power cycle that the sender's handle is of.
    pub cycle: u64,
    pub operation: DiskOperation<'a>,
}

/// What is asked for; offsets are bytes from the start of the device.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DiskOperation<'a> {
    Read { offset: u64, length: u32 },
    Write { offset: u64, data: &'a [u8] },
    Flush,
    Discard { offset: u64, length: u64 },
}

/// The answer to a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RequestAnswer<'a> {
    Data(&'a [u8]),
    Written(u32),
    Done,
    /// An error of input or output.
    Failed,
}

/// How long [`Transport::receive`] may sleep if nothing arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReceiveWait {
    /// Not at all.
    Poll,
    /// Until this time of the monotonic clock.
    Until(Nanos),
    Forever,
}

/// Why [`Transport::receive`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReceiveOutcome {
    /// Requests came, the wait was over, or the waker ended it.
    Requests,
    /// The kernel has let go of the device: nothing will arrive any more.
    Ended,
}

/// Requests from the kernel and answers to it.
pub(crate) trait Transport {
    /// Hands over answers that are still on their way, then every request that has arrived.
    fn receive(
        &mut self,
        wait: ReceiveWait,
        take: impl FnMut(IncomingRequest<'_>),
    ) -> io::Result<ReceiveOutcome>;

    /// Answers a request, at the latest when [`Transport::receive`] is called next.
    fn answer(&mut self, tag: RequestTag, answer: RequestAnswer<'_>);

    /// Handles opened from now on are of this power cycle.
    fn set_cycle(&mut self, cycle: u64);
}
