//! Calls as steps: reads and writes of files (page cache hits, read-ahead, waits, writes past the cache), syncs,
//! flushes of the log.

use tierwise_recording::{Block, BlockOp, Call, CallKind, NONE, Role, State, ThreadClass};

use crate::constants::{AT_ONCE_NS, WOKEN_NS};
use crate::emit::step_writer::StepWriter;
use crate::emit::{LogAppending, StepEmitter};
use crate::recording_rows::makes_durable;
use crate::storage;
use crate::timeline::ThreadSegment;
use crate::transactions::turns::RawTurn;
use crate::{SectorRange, Step};

/// Flushes of the log whose scripts are examined.
const MOST_LOG_SCRIPTS: usize = 4096;

impl StepEmitter<'_> {
    /// Writes the steps of a call, at an index of the turn's segments.
    pub(super) fn call(
        &mut self,
        raw: &RawTurn<'_>,
        index: usize,
        call: &Call,
        writer: &mut StepWriter<'_>,
    ) {
        let waits = waits_within(&raw.segments[index..], call.end_ns);
        let role = self.view.role(call.file);
        match (call.kind, role) {
            _ if call.failed => writer.extend(self.reads_within(call, &waits)),
            (CallKind::Await, _) => writer.drain(),
            (CallKind::Write | CallKind::Sync, Some(Role::Log)) => self.log(raw, call, writer),
            (CallKind::Read, Some(_)) => {
                self.read_calls.begin(call.end_ns, !waits.is_empty());
                writer.extend(self.read(call, &waits));
            }
            (CallKind::Write, Some(_)) => {
                self.syncs.grow(call);
                writer.extend(self.write(call, &waits));
            }
            (CallKind::Sync, role) => {
                writer.extend(self.reads_within(call, &waits));
                writer.extend(self.sync(role, call));
            }
            (CallKind::Resize, Some(role)) if call.size_bytes == 0 => {
                writer.extend(self.reads_within(call, &waits));
                let cut = self.view.address_space.cut_by(call).into_iter();
                writer.extend(cut.map(|(sector, sectors)| Step::Forget {
                    role,
                    sector,
                    sectors,
                }));
            }
            _ => writer.extend(self.reads_within(call, &waits)),
        }
    }

    /// A file or directory is made durable, or a part of a file is sent to the device early.
    fn sync(&mut self, role: Option<Role>, call: &Call) -> Option<Step> {
        match role {
            Some(role) if makes_durable(call) => Some(self.syncs.sync(self.view, role, call)),
            Some(role) => {
                let part = self.view.address_space.of_call(self.view, call);
                let (role, sector, sectors) = part.unwrap_or((role, 0, 0));
                Some(Step::WriteBack {
                    role,
                    sector,
                    sectors,
                })
            }
            None if makes_durable(call) => self.syncs.sync_directory(self.view, call),
            None => None,
        }
    }

    /// A write or flush of the log: part of a commit, else an append or a sync of its own.
    fn log(&mut self, raw: &RawTurn<'_>, call: &Call, writer: &mut StepWriter<'_>) {
        let at_ns = call.start_ns;
        let mut commits = raw.commits.iter();
        let commits = commits.any(|commit| (commit.start_ns..=commit.end_ns).contains(&at_ns));
        let flush = self.view.flushes.has(call);
        let by_session = self.view.class(raw.thread) == Some(ThreadClass::Session);
        if commits {
            writer.strip_until(call.end_ns, !makes_durable(call));
            self.flush_cpu.count(flush);
        } else if by_session && call.kind == CallKind::Write {
            if let LogAppending::PerCommit(_) = self.appending {
                let size_bytes = u32::try_from(call.size_bytes).unwrap_or(u32::MAX);
                writer.push(Step::Append { size_bytes });
            }
        } else if by_session && !flush && makes_durable(call) {
            writer.push(self.syncs.sync(self.view, Role::Log, call));
        }
        if flush && self.log_scripts.len() < MOST_LOG_SCRIPTS {
            let script = storage::sync_script(self.view, Role::Log, call);
            self.log_scripts.push(script);
        }
    }

    /// Steps of a read, with the ends of its caller's waits.
    fn read(&self, call: &Call, waits: &[u64]) -> Vec<Step> {
        let place = self.view.address_space.of_call(self.view, call);
        if call.asynchronous {
            return place
                .map(|place| Step::submit(place, false))
                .into_iter()
                .collect();
        }
        let own = self.view.own_blocks(call, BlockOp::Read);
        let mut steps = self.own_reads(&own, waits);
        match waits.last() {
            None => steps.extend(place.filter(|_| call.size_bytes > 0).map(Step::cached_read)),
            Some(&waited_ns) if own.is_empty() => steps.extend(self.under_way(call, waited_ns)),
            Some(_) => {}
        }
        steps
    }

    /// Device reads of any other call: directories and inodes to open a file, the map of free space to extend
    /// one.
    fn reads_within(&self, call: &Call, waits: &[u64]) -> Vec<Step> {
        let talks = matches!(
            call.kind,
            CallKind::Receive | CallKind::Send | CallKind::Poll | CallKind::Lock | CallKind::Sleep
        );
        if talks || call.asynchronous {
            return Vec::new();
        }
        self.own_reads(&self.view.own_blocks(call, BlockOp::Read), waits)
    }

    pub(super) fn fault(&self, wait: &State) -> Vec<Step> {
        self.own_reads(&self.view.fault_reads(wait), &[wait.end_ns])
    }

    /// Steps of a write: into the page cache, or past it if the caller's own requests went to the device.
    fn write(&self, call: &Call, waits: &[u64]) -> Vec<Step> {
        let place = self.view.address_space.of_call(self.view, call);
        if call.asynchronous {
            return place
                .map(|place| Step::submit(place, true))
                .into_iter()
                .collect();
        }
        let mut steps = self.own_reads(&self.view.own_blocks(call, BlockOp::Read), waits);
        steps.extend(
            place.map(|(role, sector, sectors)| match self.view.is_direct(call) {
                true => Step::WriteThrough {
                    role,
                    sector,
                    sectors,
                },
                false => Step::Write {
                    role,
                    sector,
                    sectors,
                },
            }),
        );
        steps
    }

    /// Requests that a thread itself sent, in order; a request is waited for if a wait ended with it.
    fn own_reads(&self, own: &[&Block], waits: &[u64]) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut left = own;
        for &waited_ns in waits {
            let sent = left.partition_point(|block| block.issued_ns <= waited_ns);
            let awaited = left[..sent]
                .iter()
                .rposition(|block| may_have_woken(block, waited_ns));
            if let Some(awaited) = awaited {
                steps.extend(self.waited_for(&left[..sent], awaited));
                left = &left[sent..];
            }
        }
        if !waits.is_empty() && left.len() == own.len() && !own.is_empty() {
            return self.waited_for(own, 0);
        }
        steps.extend(left.iter().flat_map(|block| self.submit(block)));
        steps
    }

    /// Requests sent together, one of which is waited for.
    fn waited_for(&self, sent: &[&Block], awaited: usize) -> Vec<Step> {
        let place = self.place(sent[awaited]);
        if let (Some(place), [_]) = (place, sent) {
            return vec![Step::read(place)];
        }
        // In the order in which they were sent: the first request set the position of the disk's head.
        let submits = sent.iter().filter_map(|block| self.submit(block));
        submits.chain(place.map(Step::cached_read)).collect()
    }

    fn submit(&self, block: &Block) -> Option<Step> {
        let place = self.place(block)?;
        Some(Step::submit(place, false))
    }

    fn place(&self, block: &Block) -> Option<SectorRange> {
        let (role, sector) = self.view.address_space.of_block(self.view, block)?;
        Some((role, sector, block.sectors))
    }

    /// A wait for pages of an outstanding request that was sent earlier or by another thread; else for memory or a
    /// lock, if requests to the device were recorded.
    fn under_way(&self, call: &Call, waited_ns: u64) -> Option<Step> {
        let view = self.view;
        let device = view.device_of(call.file);
        let from_ns = call.start_ns.saturating_sub(1_000_000_000);
        let mut earlier = view.blocks(from_ns, waited_ns).iter().rev().take(512);
        let role = view.role(call.file)?;
        let block = earlier.find(|block| {
            block.op == BlockOp::Read
                && block.device == device
                && (block.file == call.file || block.file == NONE)
                && may_have_woken(block, waited_ns)
        });
        let (place, reads) = match block {
            Some(block) => {
                let sector = view.address_space.sector_of(role, block)?;
                let reads = block.issued_ns >= call.start_ns;
                ((role, sector, block.sectors), reads)
            }
            None => (view.address_space.of_call(view, call)?, !view.sees(device)),
        };
        Some(match reads {
            true => Step::read(place),
            false => Step::cached_read(place),
        })
    }
}

/// Whether a request's end may have ended a wait.
fn may_have_woken(block: &Block, waited_ns: u64) -> bool {
    block.completed_ns <= waited_ns + AT_ONCE_NS.get()
        && block.completed_ns + WOKEN_NS.get() >= waited_ns
}

/// Ends of a thread's waits within a call that begins with the first segment.
fn waits_within(segments: &[ThreadSegment<'_>], end_ns: u64) -> Vec<u64> {
    let inside = segments
        .iter()
        .take_while(|segment| segment.start_ns < end_ns);
    let waits = inside.filter(|segment| segment.wait().is_some());
    waits.map(|segment| segment.end_ns).collect()
}
