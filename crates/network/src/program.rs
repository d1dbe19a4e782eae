//! A recording's work, checked once, with values that no scenario changes.

use tierwise_device::{Profile, ProfileLibrary};
use tierwise_recording::ThreadClass;
use tierwise_work::{EmulatedPath, Mechanism, RecordedDevice, Session, Step, TurnPace, Work};

use tierwise_recording::UserError;

/// Work that can be run.
#[derive(Debug)]
pub struct Program {
    pub(crate) work: Work,
    /// Those sessions of the work that have turns.
    pub(crate) sessions: Vec<SessionProgram>,
    /// Client sessions among them, their transactions, and their reads that the page cache did not answer.
    pub(crate) clients: usize,
    transactions: usize,
    reads: usize,
    /// Profiles of the recording's devices, of those that were emulated.
    pub(crate) profiles: Vec<Option<Profile>>,
    /// Profiles of all emulated disks that were up, with the path to each.
    pub(crate) paths: Vec<(Profile, EmulatedPath)>,
    /// The session that gives each signal.
    pub(crate) signallers: Vec<Option<u32>>,
    /// The longest absence of any session.
    pub(crate) longest_away_ns: u64,
}

/// A session with turns.
#[derive(Debug)]
pub(crate) struct SessionProgram {
    /// Index in the work's sessions.
    pub(crate) index: usize,
    /// Whether it is a client's session, so that its turns count.
    pub(crate) client: bool,
    /// Turns with which a transaction begins.
    pub(crate) transaction_starts: Vec<u32>,
    /// Whether it makes a second copy of the log: as long as there is a log, whatever was recorded.
    pub(crate) replicates_log: bool,
}

impl Program {
    /// Checks work; `library` has the texts of profiles that those of recorded devices refer to.
    ///
    /// # Errors
    /// Work without a client's session, or with an index that is out of range.
    pub fn new(work: Work, library: &ProfileLibrary) -> Result<Self, UserError> {
        let any = work.sessions.iter().any(is_session);
        let mut sessions = Vec::with_capacity(work.sessions.len());
        for (index, session) in work.sessions.iter().enumerate() {
            if session.turns.is_empty() {
                continue;
            }
            check_session(&work, session)?;
            sessions.push(SessionProgram {
                index,
                client: session.pace == TurnPace::Loop && (is_session(session) || !any),
                transaction_starts: transaction_starts(session),
                replicates_log: session.steps.contains(&Step::AwaitLog),
            });
        }
        let all = work.sessions.iter().flat_map(|session| &session.steps);
        let away = all.filter_map(|step| match step {
            Step::Delay(delay) => Some(delay.time_ns),
            _ => None,
        });
        let mut program = Self {
            longest_away_ns: away.max().unwrap_or(0),
            profiles: parse_profiles(&work, library)?,
            paths: emulated_paths(&work, library),
            signallers: Vec::new(),
            clients: sessions.iter().filter(|session| session.client).count(),
            transactions: 0,
            reads: 0,
            sessions,
            work,
        };
        if program.clients == 0 {
            return Err(UserError::new(
                "the recording shows no turn of a client's session",
                "record while clients work, for longer, or at a higher duty",
            ));
        }
        program.signallers = program.signallers();
        let turns = program.client_sessions().flat_map(|session| &session.turns);
        program.transactions = turns.filter(|turn| turn.ends).count();
        let steps = program.client_sessions().flat_map(|session| &session.steps);
        program.reads = steps.filter(|step| reads_missed_pages(step)).count();
        Ok(program)
    }

    /// Sessions of clients, as in the work.
    pub(crate) fn client_sessions(&self) -> impl Iterator<Item = &Session> {
        let clients = self.sessions.iter().filter(|session| session.client);
        clients.map(|session| &self.work.sessions[session.index])
    }

    pub(crate) fn pace(&self, session: &SessionProgram) -> TurnPace {
        self.work.sessions[session.index].pace
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
        let mut steps = copies.flat_map(|session| &self.work.sessions[session.index].steps);
        steps.any(|step| *step == Step::Acknowledge)
    }

    /// Transactions of client sessions, each done once.
    #[must_use]
    pub fn transactions(&self) -> usize {
        self.transactions
    }

    /// Turns of client sessions, each done once.
    pub(crate) fn client_turns(&self) -> usize {
        self.client_sessions()
            .map(|session| session.turns.len())
            .sum()
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
        let last = self.last_start(TurnPace::Time) + 1;
        self.work.observed.span_ns.max(last)
    }

    /// The number of transactions after which it repeats.
    pub(crate) fn period_transactions(&self) -> u64 {
        let last = self.last_start(TurnPace::Work) + 1;
        (self.transactions() as u64).max(last)
    }

    fn last_start(&self, pace: TurnPace) -> u64 {
        let sessions = self.work.sessions.iter();
        let paced = sessions.filter(|session| session.pace == pace && !session.turns.is_empty());
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

    fn signallers(&self) -> Vec<Option<u32>> {
        let mut signallers = Vec::new();
        for (index, session) in self.sessions.iter().enumerate() {
            for step in &self.work.sessions[session.index].steps {
                let (Step::Signal { number } | Step::Await { number }) = *step else {
                    continue;
                };
                signallers.resize(signallers.len().max(number as usize + 1), None);
                if matches!(step, Step::Signal { .. }) {
                    signallers[number as usize] = Some(index as u32);
                }
            }
        }
        signallers
    }
}

/// Whether a step reads what the page cache did not hold.
pub(crate) fn reads_missed_pages(step: &Step) -> bool {
    matches!(step, Step::Read { .. } | Step::Submit { write: false, .. })
}

fn parse_profiles(
    work: &Work,
    library: &ProfileLibrary,
) -> Result<Vec<Option<Profile>>, UserError> {
    let parse = |(index, device): (usize, &RecordedDevice)| {
        let name = format!("devices[{index}].profile");
        let text = device.profile.as_ref();
        let profile = text.map(|text| Profile::parse_with(text, &name, library));
        profile
            .transpose()
            .map_err(|error| UserError::new(error.to_string(), error.fix))
    };
    work.devices.iter().enumerate().map(parse).collect()
}

/// A stranger's profile that cannot be read is left out.
fn emulated_paths(work: &Work, library: &ProfileLibrary) -> Vec<(Profile, EmulatedPath)> {
    let parse = |(text, path): &(String, EmulatedPath)| {
        let profile = Profile::parse_with(text, "profile", library).ok()?;
        Some((profile, path.clone()))
    };
    work.paths.iter().filter_map(parse).collect()
}

fn is_session(session: &Session) -> bool {
    session.class == ThreadClass::Session
        && session.pace == TurnPace::Loop
        && !session.turns.is_empty()
}

fn transaction_starts(session: &Session) -> Vec<u32> {
    let begins = |index: usize| index == 0 || session.turns[index - 1].ends;
    let turns = (0..session.turns.len()).filter(|index| begins(*index));
    turns.map(|index| index as u32).collect()
}

fn check_session(work: &Work, session: &Session) -> Result<(), UserError> {
    let broken = |what: &str| {
        Err(UserError::new(
            format!("the work of session {} has {what}", session.name),
            "record again; if it recurs, it is a defect of tierwise",
        ))
    };
    if session.pace != TurnPace::Loop && session.starts.len() != session.turns.len() {
        return broken("turns without a start");
    }
    let end = session.steps.len() as u64;
    let mut turns = session.turns.iter();
    if turns.any(|turn| u64::from(turn.first_step) + u64::from(turn.steps) > end) {
        return broken("a turn beyond its steps");
    }
    for step in &session.steps {
        match *step {
            Step::Sync { script, .. } if script as usize >= work.scripts.len() => {
                return broken("a sync without its script");
            }
            Step::Lock { lock } if usize::from(lock) >= work.locks.len() => {
                return broken("a lock that is not listed");
            }
            _ => {}
        }
    }
    Ok(())
}
