//! Sessions made ready to be run: operations in one flat list.

use tierwise_work::{CacheWarmup, Pace, Session, Step, Turn, Work};

use crate::api::error::ReplayError;
use crate::program::operation::{CheckpointPhase, Operation, broken, compile_step};

/// A session made ready.
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
    /// Commits, and what all of them would take of a core before their flushes if they led them, had their threads
    /// been warm.
    pub(crate) leader_work: (u32, f64),
    /// Whether it makes a second copy of the log: as long as there is a log, whatever was recorded.
    pub(crate) replicates_log: bool,
    pub(crate) pace: Pace,
    /// As in the work.
    pub(crate) starts: Vec<u64>,
}

impl SessionProgram {
    /// What other programs do.
    pub(crate) fn background_load() -> Self {
        Self {
            ops: vec![Operation::BackgroundRun, Operation::BackgroundRest],
            turns: Vec::new(),
            transaction_starts: Vec::new(),
            client: false,
            thread: None,
            leader_work: (0, 0.0),
            replicates_log: false,
            pace: Pace::Loop,
            starts: Vec::new(),
        }
    }
}

/// Makes a session ready.
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
        leader_work: (0, 0.0),
        replicates_log: session.steps.contains(&Step::AwaitLog),
        pace: session.pace,
        starts: session.starts.clone(),
    };
    if session.pace != Pace::Loop && session.starts.len() != session.turns.len() {
        return Err(broken(session, "turns without a start"));
    }
    let mut begins = true;
    let mut coldness = CacheWarmup::default();
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
            routine
                .ops
                .push(compile_step(work, session, step, &mut coldness)?);
            if *step == Step::Checkpoint {
                let rest = CheckpointPhase::ALL[1..].iter();
                routine
                    .ops
                    .extend(rest.map(|part| Operation::Checkpoint(*part)));
            }
            if *step == Step::Commit {
                routine.leader_work.0 += 1;
                routine.leader_work.1 += flush(work, &mut coldness);
            }
        }
        if reply == steps.len() {
            routine.ops.push(Operation::Reply { ends: turn.ends });
        }
        routine.ops.push(Operation::EndTurn { ends: turn.ends });
    }
    Ok(routine)
}

/// A recorded flush of the log: what its leader runs before it, had it been warm.
fn flush(work: &Work, coldness: &mut CacheWarmup) -> f64 {
    let Some(rules) = &work.log else { return 0.0 };
    let leader_ns = f64::from(rules.leader_cpu_ns);
    let (_, warm_ns) = coldness.pass(&work.cpu, false, leader_ns, 0);
    let (release_ns, after_ns) = (rules.release_cpu_ns.into(), rules.release_after_ns.into());
    coldness.pass(&work.cpu, false, release_ns, after_ns);
    warm_ns
}

fn steps<'s>(session: &'s Session, turn: &Turn) -> Result<&'s [Step], ReplayError> {
    let first = turn.first_step as usize;
    let steps = session.steps.get(first..first + turn.steps as usize);
    steps.ok_or_else(|| broken(session, "a turn beyond its steps"))
}
