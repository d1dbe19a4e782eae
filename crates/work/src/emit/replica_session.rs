//! The threads of a second copy of the log as one session of the work.

use tierwise_recording::{Role, ThreadClass};

use crate::emit::emitter::Emitter;
use crate::log::log_replica::{LogReplica, flushes_log};
use crate::storage::sync_scripts;
use crate::{Pace, Session, Step, Turn};

/// Both threads as one session, with a turn for each flush of the copy.
pub(crate) fn session(replica: LogReplica, emitter: &mut Emitter<'_>) -> Session {
    let view = emitter.view;
    let calls = view.calls(replica.receiver).1.iter();
    let scripts: Vec<_> = calls
        .filter(|call| flushes_log(view, call))
        .map(|call| sync_scripts::script(view, Role::Log, call))
        .collect();
    let cpu_ns = view.cpu_ns(replica.sender) + view.cpu_ns(replica.receiver);
    let half_ns = cpu_ns / scripts.len().max(1) as u64 / 2;
    let mut session = Session {
        name: view.recording.threads[replica.receiver as usize]
            .name
            .clone(),
        class: ThreadClass::LogWriter,
        client: None,
        pace: Pace::Loop,
        turns: Vec::with_capacity(scripts.len()),
        starts: Vec::new(),
        steps: Vec::new(),
    };
    for script in scripts {
        let script = emitter.syncs.add(script);
        let steps = cycle(script, half_ns, replica.waited_for);
        session.turns.push(Turn {
            first_step: session.steps.len() as u32,
            steps: steps.len() as u32,
            tail_steps: 0,
            ends: false,
            recorded_ns: 0,
        });
        session.steps.extend(steps);
    }
    session
}

/// Steps of both threads for one flush of the copy.
fn cycle(script: u32, half_ns: u64, waited_for: bool) -> Vec<Step> {
    let half = Step::Cpu {
        time_ns: u32::try_from(half_ns).unwrap_or(u32::MAX),
        client: false,
    };
    let sync = Step::Sync {
        role: Role::Log,
        script,
    };
    let mut steps = vec![Step::AwaitLog, half, sync, half];
    steps.extend(waited_for.then_some(Step::Acknowledge));
    steps
}
