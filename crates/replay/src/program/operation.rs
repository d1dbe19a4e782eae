//! What sessions do, and how it follows from the steps of the work.

use tierwise_recording::Role;
use tierwise_work::{Coldness, Reuse, Session, Step, Work};

use crate::api::error::ReplayError;

/// What is asked of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileAccess {
    CachedRead,
    Read,
    WriteThrough,
    Write,
    AsyncRead,
    AsyncWrite,
    WriteBack,
    Discard,
}

/// What is done of a checkpoint, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckpointPhase {
    /// It begins, if it is due: the log is flushed.
    Begin,
    Copy,
    Flush,
    End,
}

impl CheckpointPhase {
    /// All of it, in order.
    pub(crate) const ALL: [Self; 4] = [Self::Begin, Self::Copy, Self::Flush, Self::End];
    /// What is passed over where none is due.
    pub(crate) const COUNT_AFTER_BEGIN: u32 = Self::ALL.len() as u32 - 1;
}

/// One thing that a session does; 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Operation {
    /// Runs; the time it would take right after it ran before, on the recorded processor.
    /// Recording it took so much longer, on this core.
    Cpu {
        base_ns: u32,
        traced_ns: u32,
        core: u16,
        head_start_ns: u32,
        client: bool,
    },
    /// Time passes; `timer`: the engine's own.
    Away { time_ns: u64, timer: bool },
    /// Reuse of what is read from here on in the turn.
    Reuse(Reuse),
    /// A file is used.
    File {
        access: FileAccess,
        role: Role,
        sectors: u32,
        sector: u64,
    },
    /// Files of a role become durable.
    Sync { role: Role, script: u32 },
    /// The log's buffer grows.
    Append { size_bytes: u32 },
    /// Pages are put into the log.
    Frames { count: u32 },
    /// The log's file is a new one.
    RecreateLog,
    /// Part of moving pages from the log to their places.
    Checkpoint(CheckpointPhase),
    /// The log becomes durable.
    Commit,
    /// More of the log must be durable than when this was last passed.
    AwaitLog,
    /// The second copy of the log is durable up to there.
    Acknowledge,
    /// A key of a hot lock is taken.
    Lock { lock: u16 },
    /// The next read is of a stream that goes on for so long.
    Stream { sectors: u32 },
    /// Others may go on.
    Signal { number: u32 },
    /// Another must have signalled.
    Await { number: u32 },
    /// All that was sent must have been answered.
    Drain,
    /// The client has its answer; what follows is its own time. `ends` a transaction.
    Reply { ends: bool },
    /// Another program has a slice of a core.
    BackgroundRun,
    /// Until its next.
    BackgroundRest,
    /// A turn is done; `ends` a transaction.
    EndTurn { ends: bool },
}

/// The operation that a step means, where the session's threads were so cold before.
///
/// # Errors
/// An index that points nowhere.
pub(crate) fn compile_step(
    work: &Work,
    session: &Session,
    step: &Step,
    coldness: &mut Coldness,
) -> Result<Operation, ReplayError> {
    let file = |access, role, sector, sectors| Operation::File {
        access,
        role,
        sectors,
        sector,
    };
    Ok(match *step {
        Step::Cpu {
            time_ns,
            after_wait_ns,
            client,
            traced_ns,
            core,
            head_start_ns,
        } => Operation::Cpu {
            base_ns: coldness
                .pass(&work.cpu, client, time_ns.into(), after_wait_ns.into())
                .1 as u32,
            traced_ns,
            core,
            head_start_ns,
            client,
        },
        Step::Away(away) => Operation::Away {
            time_ns: away.time_ns,
            timer: away.timer,
        },
        Step::Reuse(reuse) => Operation::Reuse(reuse),
        Step::Look {
            role,
            sector,
            sectors,
        } => file(FileAccess::CachedRead, role, sector, sectors),
        Step::Read {
            role,
            sector,
            sectors,
        } => file(FileAccess::Read, role, sector, sectors),
        Step::WriteThrough {
            role,
            sector,
            sectors,
        } => file(FileAccess::WriteThrough, role, sector, sectors),
        Step::Write {
            role,
            sector,
            sectors,
        } => file(FileAccess::Write, role, sector, sectors),
        Step::WriteBack {
            role,
            sector,
            sectors,
        } => file(FileAccess::WriteBack, role, sector, sectors),
        Step::Submit {
            role,
            sector,
            sectors,
            write,
        } => file(
            if write {
                FileAccess::AsyncWrite
            } else {
                FileAccess::AsyncRead
            },
            role,
            sector,
            sectors,
        ),
        Step::Forget {
            role,
            sector,
            sectors,
        } => file(FileAccess::Discard, role, sector, sectors),
        Step::Stream { sectors } => Operation::Stream { sectors },
        Step::Drain => Operation::Drain,
        Step::Sync { role, script } if (script as usize) < work.scripts.len() => {
            Operation::Sync { role, script }
        }
        Step::Sync { .. } => return Err(broken(session, "a sync without its script")),
        Step::Append { size_bytes } => Operation::Append { size_bytes },
        Step::Frames { count } => Operation::Frames { count },
        Step::LogAnew => Operation::RecreateLog,
        Step::Checkpoint => Operation::Checkpoint(CheckpointPhase::Begin),
        Step::Commit => Operation::Commit,
        Step::AwaitLog => Operation::AwaitLog,
        Step::Acknowledge => Operation::Acknowledge,
        Step::Lock { lock } if usize::from(lock) < work.locks.len() => Operation::Lock { lock },
        Step::Lock { .. } => return Err(broken(session, "a lock that is not listed")),
        Step::Signal { number } => Operation::Signal { number },
        Step::Await { number } => Operation::Await { number },
    })
}

pub(crate) fn broken(session: &Session, what: &str) -> ReplayError {
    ReplayError::new(
        format!("the work of session {} has {what}", session.name),
        "record again; if it recurs, it is a defect of tierwise",
    )
}
