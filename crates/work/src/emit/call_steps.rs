//! Calls as steps: accesses to files, syncs, flushes of the log.

use tierwise_recording::{Call, CallKind, Role, ThreadClass};

use crate::Step;
use crate::emit::emitter::{Appending, Emitter};
use crate::emit::file_steps;
use crate::emit::step_writer::StepWriter;
use crate::index::calls::makes_durable;
use crate::storage::sync_scripts;
use crate::timeline::segments::{Segment, SegmentKind};
use crate::transactions::turns::RawTurn;

/// Flushes of the log whose scripts are examined.
const MOST_LOG_SCRIPTS: usize = 4096;

impl Emitter<'_> {
    /// Writes the steps of a call; `index` is its place in the turn, `number` in the recording.
    pub(super) fn call(
        &mut self,
        raw: &RawTurn,
        index: usize,
        number: u32,
        writer: &mut StepWriter,
    ) {
        let Some(call) = self.view.call(number) else {
            return;
        };
        let waits = waits_within(&raw.segments[index..], call.end_ns);
        if call.failed {
            return writer.extend(file_steps::reads_within(self.view, call, &waits));
        }
        let role = self.view.role(call.file);
        match (call.kind, role) {
            (CallKind::Await, _) => writer.drain(),
            (CallKind::Write | CallKind::Sync, Some(Role::Log)) => self.log(raw, call, writer),
            (CallKind::Read, Some(_)) => writer.extend(file_steps::read(self.view, call, &waits)),
            (CallKind::Write, Some(_)) => {
                self.syncs.grow(call);
                writer.extend(file_steps::write(self.view, call, &waits));
            }
            _ => writer.extend(file_steps::reads_within(self.view, call, &waits)),
        }
        match (call.kind, role) {
            (CallKind::Sync, Some(role)) if role != Role::Log => {
                writer.push(self.durable(role, call));
            }
            (CallKind::Sync, None) if makes_durable(call) => {
                if let Some(step) = self.syncs.sync_directory(self.view, call) {
                    writer.push(step);
                }
            }
            (CallKind::Resize, Some(_)) if call.size_bytes == 0 => {
                writer.extend(self.syncs.forget(self.view, call));
            }
            _ => {}
        }
    }

    /// A file is made durable, or a part of it is sent to the device early.
    fn durable(&mut self, role: Role, call: &Call) -> Step {
        if makes_durable(call) {
            return self.syncs.sync(self.view, role, call);
        }
        let part = self.view.address_space.of_call(self.view, call);
        let (role, sector, sectors) = part.unwrap_or((role, 0, 0));
        Step::WriteBack {
            role,
            sector,
            sectors,
        }
    }

    /// A write or flush of the log: part of a commit, else an append or a sync of its own.
    fn log(&mut self, raw: &RawTurn, call: &Call, writer: &mut StepWriter) {
        let at = call.start_ns;
        let commits = raw
            .commits
            .iter()
            .any(|c| c.start_ns <= at && at <= c.end_ns);
        let flush = self.flushes.has(raw.thread, at);
        let by_session = self.view.class(raw.thread) == Some(ThreadClass::Session);
        if commits {
            writer.strip_until(call.end_ns);
            self.flush_cpu.count(flush);
        } else if by_session && call.kind == CallKind::Write {
            if let Appending::PerCommit(_) = self.appending {
                let size_bytes = u32::try_from(call.size_bytes).unwrap_or(u32::MAX);
                writer.push(Step::Append { size_bytes });
            }
        } else if by_session && !flush && makes_durable(call) {
            writer.push(self.syncs.sync(self.view, Role::Log, call));
        }
        if flush && self.log_scripts.len() < MOST_LOG_SCRIPTS {
            let script = sync_scripts::script(self.view, Role::Log, call);
            self.log_scripts.push(script);
        }
    }
}

/// Start and end of a thread's wait within a call that begins with the first segment.
fn waits_within(segments: &[Segment], end_ns: u64) -> Vec<(u64, u64)> {
    let inside = segments
        .iter()
        .take_while(|segment| segment.start_ns < end_ns);
    let waits = inside.filter(|segment| matches!(segment.kind, SegmentKind::Wait { .. }));
    waits
        .map(|segment| (segment.start_ns, segment.end_ns))
        .collect()
}
