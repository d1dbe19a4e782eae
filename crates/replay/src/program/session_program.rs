//! Compiled sessions: operations in one flat list.

use tierwise_work::{Pace, Session, Step, Turn, Work};

use crate::api::error::ReplayError;
use crate::program::operation::{CheckpointPhase, Operation, broken, compile_step};

/// A compiled session.
#[derive(Debug)]
pub(crate) struct SessionProgram {
    pub(crate) ops: Vec<Operation>,
    /// First operation of each turn.
    pub(crate) turns: Vec<u32>,
    /// Turns with which a transaction begins.
    pub(crate) transaction_starts: Vec<u32>,
    /// Whether it is a client's session, so that its turns count.
    pub(crate) client: bool,
    /// The thread of its client, as in the work.
    pub(crate) thread: Option<u32>,
    /// Whether it makes a second copy of the log: as long as there is a log, whatever was recorded.
    pub(crate) replicates_log: bool,
    pub(crate) pace: Pace,
    /// As in the work.
    pub(crate) starts: Vec<u64>,
}

impl SessionProgram {
    /// Work of other programs.
    pub(crate) fn background_load() -> Self {
        Self {
            ops: vec![Operation::BackgroundRun, Operation::BackgroundRest],
            turns: Vec::new(),
            transaction_starts: Vec::new(),
            client: false,
            thread: None,
            replicates_log: false,
            pace: Pace::Loop,
            starts: Vec::new(),
        }
    }
}

/// Compiles a session.
///
/// # Errors
/// Turns without their steps or starts, steps whose index is out of range.
pub(crate) fn compile(
    work: &Work,
    session: &Session,
    client: bool,
) -> Result<SessionProgram, ReplayError> {
    let mut routine = SessionProgram {
        ops: Vec::with_capacity(session.steps.len() + session.turns.len()),
        turns: Vec::with_capacity(session.turns.len()),
        transaction_starts: Vec::new(),
        client,
        thread: session.client,
        replicates_log: session.steps.contains(&Step::AwaitLog),
        pace: session.pace,
        starts: session.starts.clone(),
    };
    if session.pace != Pace::Loop && session.starts.len() != session.turns.len() {
        return Err(broken(session, "turns without a start"));
    }
    let mut begins = true;
    for (index, turn) in session.turns.iter().enumerate() {
        routine.turns.push(routine.ops.len() as u32);
        if begins {
            routine.transaction_starts.push(index as u32);
        }
        begins = turn.ends;
        let steps = steps(session, turn)?;
        let reply = steps.len().saturating_sub(turn.tail_steps as usize);
        for (at, step) in steps.iter().enumerate() {
            if at == reply {
                routine.ops.push(Operation::Reply { ends: turn.ends });
            }
            routine.ops.push(compile_step(work, session, step)?);
            if *step == Step::Checkpoint {
                let rest = CheckpointPhase::ALL[1..].iter();
                routine
                    .ops
                    .extend(rest.map(|part| Operation::Checkpoint(*part)));
            }
        }
        if reply == steps.len() {
            routine.ops.push(Operation::Reply { ends: turn.ends });
        }
        routine.ops.push(Operation::EndTurn { ends: turn.ends });
    }
    Ok(routine)
}

fn steps<'s>(session: &'s Session, turn: &Turn) -> Result<&'s [Step], ReplayError> {
    let first = turn.first_step as usize;
    let steps = session.steps.get(first..first + turn.steps as usize);
    steps.ok_or_else(|| broken(session, "a turn beyond its steps"))
}
