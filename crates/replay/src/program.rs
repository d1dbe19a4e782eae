//! Work made ready to be run many times: steps in one flat list a session, with what never changes worked out.

use std::sync::OnceLock;

use tierwise_device::{Library, Nanos, Profile};
use tierwise_recording::{Role, ThreadClass};
use tierwise_work::{CpuCost, Pace, RecordedDevice, Session, Step, SyncScript, Turn, Work};

use crate::ReplayError;

/// What is asked of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Look,
    Read,
    WriteThrough,
    Write,
    SendRead,
    SendWrite,
    Forget,
}

/// One thing that a session does; 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Op {
    /// Runs; the time it would take right after it ran before, on the recorded processor.
    Cpu { base_ns: u32, client: bool },
    /// Time passes; `timer`: the engine's own.
    Away { time_ns: u64, timer: bool },
    /// A file is used.
    File {
        ask: Ask,
        role: Role,
        sectors: u32,
        sector: u64,
    },
    /// Files of a role become durable.
    Sync { role: Role, script: u32 },
    /// The log's buffer grows.
    Append { size_bytes: u32 },
    /// The log becomes durable.
    Commit,
    /// A key of a hot lock is taken.
    Lock { lock: u16 },
    /// Others may go on.
    Signal { number: u32 },
    /// Another must have signalled.
    Await { number: u32 },
    /// All that was sent must have been answered.
    Drain,
    /// The client has its answer; what follows is its own time. `ends` a transaction.
    Reply { ends: bool },
    /// Another program has a slice of a core.
    OthersRun,
    /// Until its next.
    OthersRest,
    /// A turn is done; `ends` a transaction.
    EndTurn { ends: bool },
}

/// A session made ready.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) ops: Vec<Op>,
    /// First operation of each turn.
    pub(crate) turns: Vec<u32>,
    /// Turns with which a transaction begins.
    pub(crate) beginnings: Vec<u32>,
    /// Whether it is a client's session, so that its turns count.
    pub(crate) client: bool,
    pub(crate) pace: Pace,
    /// As in the work.
    pub(crate) starts: Vec<u64>,
}

impl Script {
    /// What other programs do.
    fn others() -> Self {
        Self {
            ops: vec![Op::OthersRun, Op::OthersRest],
            turns: Vec::new(),
            beginnings: Vec::new(),
            client: false,
            pace: Pace::Loop,
            starts: Vec::new(),
        }
    }
}

/// Work made ready.
#[derive(Debug)]
pub struct Program {
    pub(crate) work: Work,
    pub(crate) sessions: Vec<Script>,
    /// What stands in `sessions` for the other programs of the machine.
    pub(crate) others: u32,
    /// The share of the cores that other programs took to the sessions' loss; worked out when first asked for.
    pub(crate) others_share: OnceLock<f64>,
    /// Client sessions in `sessions`.
    pub(crate) clients: usize,
    /// The sectors that each script writes between.
    pub(crate) spans: Vec<(u64, u64)>,
    /// Roles whose writes into the page cache were seen.
    cached: [bool; Role::ALL.len()],
    /// Devices of the recording, their times sorted by size.
    pub(crate) devices: Vec<RecordedDevice>,
    /// Their profiles, of those that were emulated.
    pub(crate) profiles: Vec<Option<Profile>>,
    /// What stands for a device of which nothing is known.
    pub(crate) nowhere: RecordedDevice,
    /// The session that gives each signal.
    pub(crate) signallers: Vec<Option<u32>>,
}

impl Program {
    /// Makes work ready; `library` has the texts of profiles that those of recorded devices refer to.
    ///
    /// # Errors
    /// Work without a client's session, or with an index that points nowhere.
    pub fn new(work: Work, library: &Library) -> Result<Self, ReplayError> {
        let any = work.sessions.iter().any(is_session);
        let client =
            |session: &Session| session.pace == Pace::Loop && (is_session(session) || !any);
        let scripts = work
            .sessions
            .iter()
            .filter(|session| !session.turns.is_empty());
        let mut sessions: Vec<_> = scripts
            .map(|session| script(&work, session, client(session)))
            .collect::<Result<_, _>>()?;
        let clients = sessions.iter().filter(|session| session.client).count();
        if clients == 0 {
            return Err(ReplayError::new(
                "the recording shows no turn of a client's session",
                "record while clients work, for longer, or at a higher duty",
            ));
        }
        let signallers = signallers(&sessions);
        let others = sessions.len() as u32;
        sessions.push(Script::others());
        let (devices, profiles) = devices(&work, library)?;
        Ok(Self {
            spans: work.scripts.iter().map(span).collect(),
            work,
            cached: cached(&sessions),
            sessions,
            others,
            others_share: OnceLock::new(),
            clients,
            devices,
            profiles,
            nowhere: RecordedDevice::default(),
            signallers,
        })
    }

    /// Whether the writes of a role into the page cache were seen.
    pub(crate) fn is_cached(&self, role: Role) -> bool {
        self.cached[role as usize]
    }

    /// Transactions of client sessions, each done once.
    #[must_use]
    pub fn transactions(&self) -> usize {
        let clients = self.sessions.iter().filter(|session| session.client);
        let ends = |op: &&Op| matches!(op, Op::EndTurn { ends: true });
        clients
            .map(|session| session.ops.iter().filter(ends).count())
            .sum()
    }

    /// The time after which recorded work begins anew.
    pub(crate) fn period_ns(&self) -> u64 {
        let last = self.last_start(Pace::Time) + 1;
        self.work.observed.span_ns.max(last)
    }

    /// The transactions after which it does.
    pub(crate) fn period_transactions(&self) -> u64 {
        let last = self.last_start(Pace::Work) + 1;
        (self.transactions() as u64).max(last)
    }

    fn last_start(&self, pace: Pace) -> u64 {
        let paced = self.sessions.iter().filter(|session| session.pace == pace);
        paced
            .filter_map(|session| session.starts.last().copied())
            .max()
            .unwrap_or(0)
    }

    /// Client sessions of the recording.
    #[must_use]
    pub fn clients(&self) -> usize {
        self.clients
    }
}

fn devices(
    work: &Work,
    library: &Library,
) -> Result<(Vec<RecordedDevice>, Vec<Option<Profile>>), ReplayError> {
    let mut devices = work.devices.clone();
    let mut profiles = Vec::with_capacity(devices.len());
    for (index, device) in devices.iter_mut().enumerate() {
        device.reads.sort_unstable();
        device.writes.sort_unstable();
        let name = format!("devices[{index}].profile");
        let profile = device
            .profile
            .as_ref()
            .map(|text| Profile::parse_with(text, &name, library));
        profiles.push(
            profile
                .transpose()
                .map_err(|error| ReplayError::new(error.to_string(), error.fix))?,
        );
    }
    Ok((devices, profiles))
}

fn is_session(session: &Session) -> bool {
    session.class == ThreadClass::Session && session.pace == Pace::Loop && !session.turns.is_empty()
}

/// From the first to the last sector of a script's writes.
fn span(script: &SyncScript) -> (u64, u64) {
    let firsts = script.writes.iter().map(|write| write.0);
    let ends = script
        .writes
        .iter()
        .map(|write| write.0 + u64::from(write.1));
    (firsts.min().unwrap_or(0), ends.max().unwrap_or(0))
}

fn cached(sessions: &[Script]) -> [bool; Role::ALL.len()] {
    let mut cached = [false; Role::ALL.len()];
    for op in sessions.iter().flat_map(|session| &session.ops) {
        if let Op::File {
            ask: Ask::Write,
            role,
            ..
        } = op
        {
            cached[*role as usize] = true;
        }
    }
    cached
}

fn signallers(sessions: &[Script]) -> Vec<Option<u32>> {
    let mut found = Vec::new();
    for (index, session) in sessions.iter().enumerate() {
        for op in &session.ops {
            if let Op::Signal { number } | Op::Await { number } = *op {
                found.resize(found.len().max(number as usize + 1), None);
            }
            if let Op::Signal { number } = *op {
                found[number as usize] = Some(index as u32);
            }
        }
    }
    found
}

fn script(work: &Work, session: &Session, client: bool) -> Result<Script, ReplayError> {
    let mut script = Script {
        ops: Vec::with_capacity(session.steps.len() + session.turns.len()),
        turns: Vec::with_capacity(session.turns.len()),
        beginnings: Vec::new(),
        client,
        pace: session.pace,
        starts: session.starts.clone(),
    };
    if session.pace != Pace::Loop && session.starts.len() != session.turns.len() {
        return Err(broken(session, "turns without a start"));
    }
    let mut begins = true;
    for (index, turn) in session.turns.iter().enumerate() {
        script.turns.push(script.ops.len() as u32);
        if begins {
            script.beginnings.push(index as u32);
        }
        begins = turn.ends;
        let steps = steps(session, turn)?;
        let reply = steps.len().saturating_sub(turn.tail_steps as usize);
        for (at, step) in steps.iter().enumerate() {
            if at == reply {
                script.ops.push(Op::Reply { ends: turn.ends });
            }
            script.ops.push(op(work, session, step)?);
        }
        if reply == steps.len() {
            script.ops.push(Op::Reply { ends: turn.ends });
        }
        script.ops.push(Op::EndTurn { ends: turn.ends });
    }
    Ok(script)
}

fn steps<'s>(session: &'s Session, turn: &Turn) -> Result<&'s [Step], ReplayError> {
    let first = turn.first_step as usize;
    let steps = session.steps.get(first..first + turn.steps as usize);
    steps.ok_or_else(|| broken(session, "a turn beyond its steps"))
}

fn op(work: &Work, session: &Session, step: &Step) -> Result<Op, ReplayError> {
    let file = |ask, role, sector, sectors| Op::File {
        ask,
        role,
        sectors,
        sector,
    };
    Ok(match *step {
        Step::Cpu {
            time_ns,
            after_wait_ns,
            client,
        } => Op::Cpu {
            base_ns: (f64::from(time_ns) / factor(work.cpu, after_wait_ns.into())) as u32,
            client,
        },
        Step::Away(away) => Op::Away {
            time_ns: away.time_ns,
            timer: away.timer,
        },
        Step::Look {
            role,
            sector,
            sectors,
        } => file(Ask::Look, role, sector, sectors),
        Step::Read {
            role,
            sector,
            sectors,
        } => file(Ask::Read, role, sector, sectors),
        Step::WriteThrough {
            role,
            sector,
            sectors,
        } => file(Ask::WriteThrough, role, sector, sectors),
        Step::Write {
            role,
            sector,
            sectors,
        } => file(Ask::Write, role, sector, sectors),
        Step::Submit {
            role,
            sector,
            sectors,
            write,
        } => file(
            if write { Ask::SendWrite } else { Ask::SendRead },
            role,
            sector,
            sectors,
        ),
        Step::Forget {
            role,
            sector,
            sectors,
        } => file(Ask::Forget, role, sector, sectors),
        Step::Drain => Op::Drain,
        Step::Sync { role, script } if (script as usize) < work.scripts.len() => {
            Op::Sync { role, script }
        }
        Step::Sync { .. } => return Err(broken(session, "a sync without its script")),
        Step::Append { size_bytes } => Op::Append { size_bytes },
        Step::Commit => Op::Commit,
        Step::Lock { lock } if usize::from(lock) < work.locks.len() => Op::Lock { lock },
        Step::Lock { .. } => return Err(broken(session, "a lock that is not listed")),
        Step::Signal { number } => Op::Signal { number },
        Step::Await { number } => Op::Await { number },
    })
}

fn broken(session: &Session, what: &str) -> ReplayError {
    ReplayError::new(
        format!("the work of session {} has {what}", session.name),
        "record again; if it recurs, it is a defect of tierwise",
    )
}

/// How much more a burst costs after a wait; see [`CpuCost`].
pub(crate) fn factor(cost: Option<CpuCost>, wait_ns: Nanos) -> f64 {
    cost.map_or(1.0, |cost| {
        let rise = cost.slope * (wait_ns as f64 / cost.scale_ns).ln_1p();
        (1.0 + rise).clamp(1.0, cost.most.max(1.0))
    })
}
