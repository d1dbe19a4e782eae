//! Answers requests at their model times. One thread owns transport, model, store and counters, so that there
//! is no lock on the way of a request.
//!
//! The thread sleeps until shortly before the next request is due, and polls from then on for both: what is
//! due, and what arrives.

use std::sync::mpsc::Receiver;

use tierwise_device::{Device, Nanos, Op, Request, SECTOR_BYTES};

use crate::DiskError;
use crate::byte_store::{CompletionEffect, VolatileStore};
use crate::clock;
use crate::control_socket::{ControlCommand, PendingCommand};
use crate::device_counters::{DeviceCounters, DeviceStats};
use crate::pacer::DiskFaults;
use crate::pacer::{ArrivedRequest, DueAnswer, Pacer};
use crate::priority::ServingState;
use crate::transport::{
    DiskOperation, IncomingRequest, ReceiveOutcome, ReceiveWait, RequestAnswer, RequestTag,
    Transport,
};
use crate::undo_log::CutReport;

/// A request inside the device.
struct PendingRequest {
    tag: RequestTag,
    effect: CompletionEffect,
    reply: ReplyKind,
}

/// What to answer when it is done.
enum ReplyKind {
    Read { offset: u64, length: u32 },
    Written(u32),
    Done,
}

/// A device that is being served.
pub(crate) struct ServedDevice {
    store: VolatileStore,
    faults: DiskFaults,
    size_sectors: u64,
    pacer: Pacer<PendingRequest>,
    counters: DeviceCounters,
    spin: SpinTime,
    watched: ServingState,
    /// Answers that are due.
    done: Vec<DueAnswer<PendingRequest>>,
}

/// How long the thread polls before a request is due; the rest of the wait it sleeps.
///
/// A sleep ends late by what the machine needs to wake a thread: a microsecond, or fifty where an idle
/// processor of a guest is to be woken. The thread learns the lateness that one sleep in ten exceeds, and polls
/// for that long. Its estimate goes up by nine parts where a sleep was later, and down by one where not
/// (Robbins and Monro, 1951), so that it settles at this quantile.
#[derive(Debug)]
pub(crate) struct SpinTime {
    lateness: Nanos,
    longest: Nanos,
}

/// Part by which the estimate moves.
const STEP: Nanos = 100;
/// A sleep of no length takes about as long.
const SHORTEST: Nanos = 3_000;

impl SpinTime {
    /// Polls for at most `longest`, and for so long until the first sleeps.
    pub fn new(longest: Nanos) -> Self {
        Self {
            lateness: longest,
            longest,
        }
    }

    /// How long to wait for a request that is due, after a sleep that ended at its time. A real-time thread hardly
    /// polls: it wakes at once on a busy core, and keeps others off its own.
    fn wait(&self, due: Nanos, slept_until: Nanos, now: Nanos, realtime: bool) -> ReceiveWait {
        let polled = if realtime { SHORTEST } else { self.lateness };
        let wake_at = due.saturating_sub(polled);
        // It has slept for this request, and has since learned to sleep for longer: to poll the rest is less.
        let near = !realtime && due.saturating_sub(slept_until) <= self.longest;
        if near || wake_at <= now {
            ReceiveWait::Poll
        } else {
            ReceiveWait::Until(wake_at)
        }
    }

    fn slept(&mut self, late: Nanos) {
        let next = if late > self.lateness {
            self.lateness + 9 * STEP
        } else {
            self.lateness - STEP
        };
        self.lateness = next.clamp(SHORTEST, self.longest.max(SHORTEST));
    }
}

impl ServedDevice {
    pub fn new(
        device: Box<dyn Device>,
        store: VolatileStore,
        counters: DeviceCounters,
        spin: SpinTime,
        watched: ServingState,
    ) -> Self {
        Self {
            store,
            faults: DiskFaults::none(),
            size_sectors: device.capacity_sectors(),
            pacer: Pacer::new(device, counters.path),
            counters,
            spin,
            watched,
            done: Vec::with_capacity(1024),
        }
    }

    /// Serves until the kernel lets go of the device.
    pub fn run(
        mut self,
        mut transport: impl Transport,
        commands: &Receiver<PendingCommand>,
    ) -> Result<(), DiskError> {
        let mut slept_until = 0;
        loop {
            let wait = self.wait(slept_until);
            let received = transport
                .receive(wait, |incoming| self.arrive(&incoming))
                .map_err(DiskError::system("taking requests"))?;
            if let ReceiveWait::Until(time) = wait {
                // Awake before that, it was for what came.
                if let Some(late) = clock::monotonic_now().checked_sub(time) {
                    self.spin.slept(late);
                    slept_until = time;
                }
            }
            if received == ReceiveOutcome::Ended {
                return Ok(());
            }
            while let Ok(asked) = commands.try_recv() {
                asked.answer(|command| self.obey(command));
                transport.set_cycle(self.store.cycle());
            }
            self.pacer.advance(clock::monotonic_now(), &mut self.done);
            self.answer(&mut transport);
        }
    }

    /// How long to wait for what arrives, after a sleep that ended at its time.
    fn wait(&self, slept_until: Nanos) -> ReceiveWait {
        let due = self.pacer.next_due();
        self.watched.set_due(due);
        let realtime = self.watched.is_realtime();
        due.map_or(ReceiveWait::Forever, |due| {
            self.spin
                .wait(due, slept_until, clock::monotonic_now(), realtime)
        })
    }

    fn arrive(&mut self, incoming: &IncomingRequest<'_>) {
        let (store, cycle) = (&mut self.store, incoming.cycle);
        let (op, offset, length, effect, reply) = match incoming.operation {
            DiskOperation::Read { offset, length } => {
                let reply = ReplyKind::Read { offset, length };
                let effect = store.nothing(cycle);
                (Op::Read, offset, u64::from(length), effect, reply)
            }
            DiskOperation::Write { offset, data } => {
                let reply = ReplyKind::Written(data.len() as u32);
                let effect = store.write(cycle, offset, data);
                (Op::Write, offset, data.len() as u64, effect, reply)
            }
            DiskOperation::Flush => (Op::Flush, 0, 0, store.flush(cycle), ReplyKind::Done),
            DiskOperation::Discard { offset, length } => {
                let effect = store.discard(cycle, offset, length);
                (Op::Discard, offset, length, effect, ReplyKind::Done)
            }
        };
        let sector = offset / SECTOR_BYTES;
        let sectors = (offset + length).div_ceil(SECTOR_BYTES) - sector;
        let request = Request::new(op, sector, u32::try_from(sectors).unwrap_or(u32::MAX));
        let tag = incoming.tag;
        let arrival = ArrivedRequest {
            partition: incoming.partition,
            request,
            reply: PendingRequest { tag, effect, reply },
        };
        let now = clock::monotonic_now();
        self.counters.arrived(now, arrival.partition, &request);
        let alive = self.faults.take(now);
        if !alive || (op == Op::Flush && self.store.lies()) {
            self.done.push(arrival.at_once(now));
        } else {
            self.pacer.submit(now, arrival, &mut self.done);
        }
    }

    fn answer(&mut self, transport: &mut impl Transport) {
        for DueAnswer { served, reply } in self.done.drain(..) {
            let PendingRequest { tag, effect, reply } = reply;
            let now = clock::monotonic_now();
            // In this order: a request that an unreadable sector or a dead device refuses has no effect.
            let succeeds = !self.faults.dead(now)
                && self.faults.let_through(&served.request)
                && self.store.complete(&effect, now);
            self.counters.answered(now, served, succeeds);
            let answer = match reply {
                _ if !succeeds => RequestAnswer::Failed,
                ReplyKind::Read { offset, length } => {
                    RequestAnswer::Data(self.store.read(offset, length as usize))
                }
                ReplyKind::Written(length) => RequestAnswer::Written(length),
                ReplyKind::Done => RequestAnswer::Done,
            };
            transport.answer(tag, answer);
        }
    }

    fn obey(&mut self, command: ControlCommand) -> Result<CommandOutcome, String> {
        let now = clock::monotonic_now();
        match command {
            ControlCommand::Stats => {
                let (unflushed, written) = (self.store.unflushed_bytes(), self.pacer.written());
                return Ok(CommandOutcome::Stats(
                    self.counters.report(unflushed, written),
                ));
            }
            ControlCommand::Cut { keep_random } => {
                return Ok(CommandOutcome::Cut(self.cut(keep_random)));
            }
            ControlCommand::ResetStats => self.counters.reset(),
            ControlCommand::Timing { on } => self.pacer.set_timing(on, now, &mut self.done),
            ControlCommand::Path { us } => {
                self.counters.path = (us * 1e3) as Nanos;
                self.pacer.set_path(self.counters.path);
            }
            ControlCommand::Fail { after } => after.apply(now, &mut self.faults)?,
            ControlCommand::Slow { factor, length_s } => {
                let length = ControlCommand::slow_length(factor, length_s)?;
                self.pacer.slow(now, factor, length);
            }
            ControlCommand::Unreadable { first, last } => {
                let sectors = ControlCommand::sectors(first, last, self.size_sectors)?;
                self.faults.make_unreadable(sectors);
            }
            // The thread that was asked does these: it waits for this one.
            ControlCommand::Attach | ControlCommand::Detach { .. } => {}
        }
        Ok(CommandOutcome::Done)
    }

    /// The power goes and comes back: requests inside fail, and so do handles opened before.
    fn cut(&mut self, keep_random: Option<u64>) -> CutReport {
        let mut report = self.store.cut(keep_random, clock::monotonic_now());
        let before = self.done.len();
        self.pacer.abort(&mut self.done);
        report.failed_requests = (self.done.len() - before) as u64;
        report
    }
}

/// The outcome of a command.
pub(crate) enum CommandOutcome {
    Stats(DeviceStats),
    Cut(CutReport),
    Done,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_time_thread_sleeps_where_others_poll() {
        let (spin, due, now) = (SpinTime::new(50_000), 1_000_000, 960_000);
        assert_eq!(spin.wait(due, 0, now, false), ReceiveWait::Poll);
        assert_eq!(
            spin.wait(due, 0, now, true),
            ReceiveWait::Until(due - SHORTEST),
            "its reader may be on this core"
        );
        assert_eq!(spin.wait(due, 0, due - SHORTEST, true), ReceiveWait::Poll);
        assert_eq!(
            spin.wait(due, 0, 900_000, false),
            ReceiveWait::Until(due - 50_000)
        );
        assert_eq!(spin.wait(due, 970_000, 900_000, false), ReceiveWait::Poll);
    }
}
