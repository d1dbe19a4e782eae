//! A ring of `io_uring` for commands to a driver: the answer to a command is a request for this process.
//!
//! One system call hands over any number of commands and takes any number of events. The thread that makes a
//! ring alone may use it.

use std::io;

use io_uring::{IoUring, cqueue, opcode, squeue, types};

use super::{ReceiveWait, Waker};
use crate::clock;

type Ring = IoUring<squeue::Entry128, cqueue::Entry>;

/// Commands that are handed over together.
const SIZE: u32 = 256;
/// `user_data` of the waker's events; those of commands are below it.
const WAKER: u64 = u64::MAX;

/// An event of the ring.
#[derive(Clone, Copy, Debug)]
pub(super) enum RingEvent {
    /// The waker was used.
    Woken,
    /// The command with this `user_data` has this result.
    Command { number: u64, result: i32 },
}

pub(super) struct CommandRing {
    ring: Ring,
    waker: Waker,
}

impl CommandRing {
    /// A ring for so many commands that are with the kernel at once.
    ///
    /// Fails where `io_uring` is older than Linux 6.1, or forbidden: by `kernel.io_uring_disabled`, or by the
    /// filter of a container.
    pub fn new(commands: usize, waker: Waker) -> io::Result<Self> {
        let ring = Ring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_cqsize((2 * commands as u32).next_power_of_two())
            .build(SIZE)?;
        let mut ring = Self { ring, waker };
        ring.watch_waker();
        Ok(ring)
    }

    fn watch_waker(&mut self) {
        let poll = opcode::PollAdd::new(types::Fd(self.waker.descriptor()), libc::POLLIN as u32)
            .build()
            .user_data(WAKER);
        self.push(&poll.into());
    }

    /// Puts a command in the ring. Memory that it points to must live as long as the ring.
    pub fn push(&mut self, command: &squeue::Entry128) {
        // SAFETY: as the caller promises.
        while unsafe { self.ring.submission().push(command) }.is_err() {
            // Without waiting, entering fails only for want of memory; then there is nothing to be done.
            if let Err(error) = self.enter(ReceiveWait::Poll) {
                assert_eq!(
                    error.raw_os_error(),
                    Some(libc::EBUSY),
                    "entering the ring: {error}"
                );
            }
        }
    }

    /// Hands over what was pushed, and waits for an event.
    pub fn enter(&mut self, wait: ReceiveWait) -> io::Result<()> {
        const GET_EVENTS: u32 = 1;
        let pushed = self.ring.submission().len() as u32;
        let submitter = self.ring.submitter();
        let entered = match wait {
            // SAFETY: without an argument the call reads no memory of the caller.
            ReceiveWait::Poll => unsafe {
                submitter.enter::<libc::sigset_t>(pushed, 0, GET_EVENTS, None)
            },
            // SAFETY: as above.
            ReceiveWait::Forever => unsafe {
                submitter.enter::<libc::sigset_t>(pushed, 1, GET_EVENTS, None)
            },
            ReceiveWait::Until(time) => {
                let rest = clock::timespec_until(time);
                let rest = types::Timespec::new()
                    .sec(rest.tv_sec as u64)
                    .nsec(rest.tv_nsec as u32);
                submitter.submit_with_args(1, &types::SubmitArgs::new().timespec(&rest))
            }
        };
        match entered {
            Ok(_) => Ok(()),
            Err(error) if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// As [`CommandRing::enter`], but without a system call where there is nothing to hand over, take or wait for.
    pub fn enter_if_needed(&mut self, wait: ReceiveWait) -> io::Result<()> {
        let queue = self.ring.submission();
        let idle = wait == ReceiveWait::Poll && queue.is_empty() && !queue.taskrun();
        drop(queue);
        if idle { Ok(()) } else { self.enter(wait) }
    }

    pub fn event(&mut self) -> Option<RingEvent> {
        let event = self.ring.completion().next()?;
        if event.user_data() != WAKER {
            return Some(RingEvent::Command {
                number: event.user_data(),
                result: event.result(),
            });
        }
        self.waker.clear();
        self.watch_waker();
        Some(RingEvent::Woken)
    }
}
