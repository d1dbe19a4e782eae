//! Operations of a session, compiled from the steps of the work.

use tierwise_recording::Role;
use tierwise_work::{Reuse, Session, Step, Work};

use crate::api::error::ReplayError;

/// How a file is accessed.
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

/// Phases of a checkpoint, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckpointPhase {
    /// Starts the checkpoint if it is due, and flushes the log.
    Begin,
    Copy,
    Flush,
    End,
}

impl CheckpointPhase {
    /// All phases, in order.
    pub(crate) const ALL: [Self; 4] = [Self::Begin, Self::Copy, Self::Flush, Self::End];
    /// Phases to skip where no checkpoint is due.
    pub(crate) const COUNT_AFTER_BEGIN: u32 = Self::ALL.len() as u32 - 1;
}

/// One operation of a session; 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Operation {
    /// Runs for `base_ns` on the recorded processor.
    Cpu { base_ns: u32, client: bool },
    /// Waits for a time; `timer`: on the engine's own timer, else for the client.
    Delay { time_ns: u64, timer: bool },
    /// Reuse distance of the turn's next reads.
    Reuse(Reuse),
    /// Accesses a file.
    File {
        access: FileAccess,
        role: Role,
        sectors: u32,
        sector: u64,
    },
    /// Makes files of a role durable.
    Sync { role: Role, script: u32 },
    /// Appends to the log's buffer.
    Append { size_bytes: u32 },
    /// Appends pages to the write-ahead log.
    Frames { count: u32 },
    /// Replaces the log's file by a new one.
    RecreateLog,
    /// A phase of a checkpoint.
    Checkpoint(CheckpointPhase),
    /// Commits: makes the log durable.
    Commit,
    /// Waits until more of the log is durable than at the previous such operation.
    AwaitLog,
    /// The log's replica is durable up to the sent position.
    Acknowledge,
    /// Takes a key of a hot lock.
    Lock { lock: u16 },
    /// The next read belongs to a stream that continues for this many sectors.
    Stream { sectors: u32 },
    /// Signals sessions that wait for this number.
    Signal { number: u32 },
    /// Waits for the signal of this number.
    Await { number: u32 },
    /// Waits for all asynchronous requests.
    Drain,
    /// Replies to the client; client time follows. `ends`: a transaction.
    Reply { ends: bool },
    /// Background load uses one slice of a core.
    BackgroundRun,
    /// Background load waits for its next slice.
    BackgroundRest,
    /// Ends a turn; `ends`: a transaction.
    EndTurn { ends: bool },
}

/// Compiles a step.
///
/// # Errors
///
/// An index that is out of range.
pub(crate) fn compile_step(
    work: &Work,
    session: &Session,
    step: &Step,
) -> Result<Operation, ReplayError> {
    let file = |access, role, sector, sectors| Operation::File {
        access,
        role,
        sectors,
        sector,
    };
    Ok(match *step {
        Step::Cpu { time_ns, client } => Operation::Cpu {
            base_ns: time_ns,
            client,
        },
        Step::Delay(away) => Operation::Delay {
            time_ns: away.time_ns,
            timer: away.timer,
        },
        Step::Reuse(reuse) => Operation::Reuse(reuse),
        Step::CachedRead {
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
        Step::NewLogFile => Operation::RecreateLog,
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
