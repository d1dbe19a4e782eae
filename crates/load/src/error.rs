//! Errors of a load, and their fixes.

use thiserror::Error;

/// A load that could not run, or broke off.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum LoadError {
    /// The workload contradicts itself.
    #[error("workload: {0}")]
    Workload(String),
    /// The address of the database cannot be read.
    #[error("database address: {0}")]
    Address(String),
    /// A client got no connection.
    #[error("client {client} cannot connect: {message}")]
    Connect {
        /// Which client, from 0.
        client: usize,
        /// What the engine said.
        message: String,
    },
    /// A statement failed for a reason that a retry does not resolve.
    #[error("{context}: {message} (in: {sql})")]
    Statement {
        /// Transaction or table that the statement belongs to.
        context: String,
        /// The statement as the workload writes it.
        sql: String,
        /// What the engine said.
        message: String,
    },
    /// A thread or socket could not be made.
    #[error("cannot start the clients: {0}")]
    Start(String),
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
    /// The clients were lost in an earlier run that failed or was stopped.
    #[error("the clients have no connections since an earlier run broke off")]
    Disconnected,
}

impl LoadError {
    /// What to do about it, in the imperative.
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Workload(_) => "mend the workload",
            Self::Address(_) => "give it as keywords, such as user=me dbname=base",
            Self::Connect { .. } => {
                "see that the server runs and admits as many connections as there are clients"
            }
            Self::Statement { message, .. } if reports_full_device(message) => {
                "give the device of that role more space, or load less"
            }
            Self::Statement { .. } => "see the server's log, and try the statement by hand",
            Self::Start(_) => "use fewer clients or raise the limit of open files",
            Self::Stopped => "start again",
            Self::Disconnected => "make new clients",
        }
    }
}

/// Whether an engine reports a full device, in its own words.
fn reports_full_device(message: &str) -> bool {
    ["No space left", "is full", "disk full"]
        .iter()
        .any(|words| message.contains(words))
}
