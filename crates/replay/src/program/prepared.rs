//! A recording's work, compiled: operations of each session, devices, and values that no scenario changes.

use tierwise_device::{Library, Profile};
use tierwise_recording::ThreadClass;
use tierwise_work::{Mechanism, Pace, RecordedDevice, Session, Work};

use crate::api::error::ReplayError;
use crate::program::operation::{FileAccess, Operation};
use crate::program::session_program::{SessionProgram, compile};

/// Work compiled for replays.
#[derive(Debug)]
pub struct Program {
    pub(crate) work: Work,
    pub(crate) sessions: Vec<SessionProgram>,
    /// Index in `sessions` of the background load: other programs of the machine.
    pub(crate) background_load: u32,
    /// Client sessions in `sessions`, and their transactions.
    pub(crate) clients: usize,
    transactions: usize,
    reads: usize,
    /// Devices of the recording.
    pub(crate) devices: Vec<RecordedDevice>,
    /// Their profiles, of those that were emulated.
    pub(crate) profiles: Vec<Option<Profile>>,
    /// Substitute for an unknown device.
    pub(crate) unknown_device_times: RecordedDevice,
    /// The session that gives each signal.
    pub(crate) signallers: Vec<Option<u32>>,
    /// The longest absence of any session.
    pub(crate) longest_away_ns: u64,
}

impl Program {
    /// Compiles work; `library` has the texts of profiles that those of recorded devices refer to.
    ///
    /// # Errors
    /// Work without a client's session, or with an index that is out of range.
    pub fn new(work: Work, library: &Library) -> Result<Self, ReplayError> {
        if !are_sound(&work) {
            return Err(ReplayError::new(
                "the rules of checkpoints point to no flush",
                "record again; if it recurs, it is a defect of tierwise",
            ));
        }
        let any = work.sessions.iter().any(is_session);
        let client = |session: &Session| is_client(session, any);
        let scripts = work
            .sessions
            .iter()
            .filter(|session| !session.turns.is_empty());
        let mut sessions: Vec<_> = scripts
            .map(|session| compile(&work, session, client(session)))
            .collect::<Result<_, _>>()?;
        let clients = sessions.iter().filter(|session| session.client).count();
        if clients == 0 {
            return Err(ReplayError::new(
                "the recording shows no turn of a client's session",
                "record while clients work, for longer, or at a higher duty",
            ));
        }
        let signallers = signallers(&sessions);
        let longest_away_ns = longest_away_ns(sessions.iter().flat_map(|session| &session.ops));
        let background_load = sessions.len() as u32;
        sessions.push(SessionProgram::background_load());
        let (devices, profiles) = devices(&work, library)?;
        Ok(Self {
            work,
            transactions: count(&sessions, ends_a_transaction),
            reads: count(&sessions, reads),
            sessions,
            background_load,
            clients,
            devices,
            profiles,
            unknown_device_times: RecordedDevice::default(),
            signallers,
            longest_away_ns,
        })
    }

    /// Whether a mechanism is disabled.
    pub(crate) fn is_off(&self, mechanism: Mechanism) -> bool {
        self.work.disabled.has(mechanism)
    }

    /// Client sessions' reads that the page cache did not answer, per nanosecond of the recording.
    pub(crate) fn reads_per_ns(&self) -> f64 {
        self.reads as f64 / self.work.observed.span_ns.max(1) as f64
    }

    /// Whether commits wait for a second copy of the log.
    pub(crate) fn waits_for_replica(&self) -> bool {
        let copies = self
            .sessions
            .iter()
            .filter(|session| session.replicates_log);
        copies
            .flat_map(|session| &session.ops)
            .any(|op| *op == Operation::Acknowledge)
    }

    /// Transactions of client sessions, each done once.
    #[must_use]
    pub fn transactions(&self) -> usize {
        self.transactions
    }

    /// Turns of client sessions, each done once.
    pub(crate) fn client_turns(&self) -> usize {
        let clients = self.sessions.iter().filter(|session| session.client);
        clients.map(|session| session.turns.len()).sum()
    }

    /// Whether a session of the work is a client's.
    pub(crate) fn is_client(&self, session: &Session) -> bool {
        !session.turns.is_empty() && is_client(session, self.work.sessions.iter().any(is_session))
    }

    /// Transactions as the clients counted them, for this many that the work shows.
    pub(crate) fn counted(&self, shown: u64) -> u64 {
        (shown as f64 * self.counted_each()).round() as u64
    }

    /// The same for one.
    pub(crate) fn counted_each(&self) -> f64 {
        self.work.observed.counted_per_shown.unwrap_or(1.0)
    }

    /// The time after which recorded work repeats.
    pub(crate) fn period_ns(&self) -> u64 {
        let last = self.last_start(Pace::Time) + 1;
        self.work.observed.span_ns.max(last)
    }

    /// The number of transactions after which it repeats.
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
    let devices = work.devices.clone();
    let mut profiles = Vec::with_capacity(devices.len());
    for (index, device) in devices.iter().enumerate() {
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

/// Whether a session is a client's; every loop counts as one unless `any` thread serves a client.
fn is_client(session: &Session, any: bool) -> bool {
    session.pace == Pace::Loop && (is_session(session) || !any)
}

fn is_session(session: &Session) -> bool {
    session.class == ThreadClass::Session && session.pace == Pace::Loop && !session.turns.is_empty()
}

fn ends_a_transaction(op: &Operation) -> bool {
    matches!(op, Operation::EndTurn { ends: true })
}

fn reads(op: &Operation) -> bool {
    let Operation::File { access, .. } = op else {
        return false;
    };
    matches!(access, FileAccess::Read | FileAccess::AsyncRead)
}

/// Number of the clients' operations that match.
fn count(sessions: &[SessionProgram], is_such: fn(&Operation) -> bool) -> usize {
    let clients = sessions.iter().filter(|session| session.client);
    let ops = clients.flat_map(|session| &session.ops);
    ops.filter(|op| is_such(op)).count()
}

fn signallers(sessions: &[SessionProgram]) -> Vec<Option<u32>> {
    let mut found = Vec::new();
    for (index, session) in sessions.iter().enumerate() {
        for op in &session.ops {
            if let Operation::Signal { number } | Operation::Await { number } = *op {
                found.resize(found.len().max(number as usize + 1), None);
            }
            if let Operation::Signal { number } = *op {
                found[number as usize] = Some(index as u32);
            }
        }
    }
    found
}

/// The longest absence of a session.
fn longest_away_ns<'a>(ops: impl Iterator<Item = &'a Operation>) -> u64 {
    let away = ops.filter_map(|op| match op {
        Operation::Delay { time_ns, .. } => Some(*time_ns),
        _ => None,
    });
    away.max().unwrap_or(0)
}

/// Whether the script indexes in the rules of work are valid.
fn are_sound(work: &Work) -> bool {
    let scripts = work.scripts.len() as u64;
    work.checkpoints.as_ref().is_none_or(|rules| {
        let is_there = |script: u32| u64::from(script) < scripts;
        let mut data = rules.scripts.iter();
        !rules.scripts.is_empty()
            && data.all(|script| is_there(script.1))
            && is_there(rules.log_script)
            && is_there(rules.header_script)
    })
}
