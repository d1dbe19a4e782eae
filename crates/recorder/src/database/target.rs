//! The database that is recorded: its processes, its rules, the root of its files.

use std::path::{Path, PathBuf};

use crate::host::processes::Family;
use tierwise_recording::{ClientKind, Role, Rules};

use crate::UserError;
use crate::database::clients::kind_of_name;
use crate::database::servers::Server;
use crate::database::{rules, settings};
use crate::host::paths::identity;
use crate::host::processes::{self, Identity};
use crate::host::sockets::Sockets;

/// Which database is wanted.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// The one whose first process has this pid.
    Pid(i32),
    /// The one that works in this data directory.
    DataDirectory(PathBuf),
    /// The only one of this engine on the machine.
    Engine(String),
}

pub struct Target {
    pub pid: i32,
    pub rules: Rules,
    /// Root of its files, as seen by this process; a container has its own.
    pub root: PathBuf,
    identity: Identity,
}

impl Target {
    /// Finds it; `chosen` are rules in place of those of its program, `roles` go before all rules: path, role.
    ///
    /// # Errors
    /// If it does not run, several do, there are no rules for it, or it is a client.
    pub fn find(
        wanted: &Wanted,
        chosen: Option<&str>,
        roles: &[(String, Role)],
    ) -> Result<Self, UserError> {
        let chosen = chosen.map(rules::load).transpose()?;
        let pid = match wanted {
            Wanted::Pid(pid) => *pid,
            Wanted::DataDirectory(directory) => pid_in(directory)?,
            Wanted::Engine(name) => pid_of_engine(name)?,
        };
        let Some(identity) = Identity::of(pid) else {
            return Err(UserError::new(
                format!("--pid: there is no process {pid}"),
                "give the pid of the database's first process",
            ));
        };
        let program = processes::program_of(pid);
        if kind_of_name(&program).is_some_and(|kind| kind != ClientKind::Replica) {
            let problem = "is a client: it has no database files of its own";
            return Err(UserError::new(
                format!("--pid: process {pid} ({program}) {problem}"),
                "give the pid of its server",
            ));
        }
        let Some(rules) = chosen.or_else(|| rules::of_program(&program).cloned()) else {
            let known = rules::names();
            return Err(UserError::new(
                format!("--pid: process {pid} ({program}) is of no engine that tierwise knows"),
                format!("give --rules with one of {known}, or a TOML file"),
            ));
        };
        let root = root_of(pid);
        let named = roles.iter().cloned();
        let found = settings::roles_of(pid, &rules, &root);
        let first: Vec<_> = named.chain(found).collect();
        Ok(Self {
            pid,
            rules: rules.after(&first, "--role")?,
            root,
            identity,
        })
    }

    pub fn server(&self) -> Server {
        Server::of(self.pid, &self.rules, &self.root, &Sockets::now())
    }

    /// Its current processes, with everything they started.
    pub fn processes(&self) -> Vec<i32> {
        Family::now().with_descendants(&[self.pid])
    }

    pub fn alive(&self) -> bool {
        self.identity.alive()
    }

    /// Pid of the process whose mounts count; none for this process's mounts.
    pub fn mounts_of(&self) -> Option<i32> {
        (self.root != Path::new("/")).then_some(self.pid)
    }
}

/// The only server that works in a directory, which the rules of its engine call its data directory.
fn pid_in(directory: &Path) -> Result<i32, UserError> {
    let fix = "name the data directory of a running database";
    let place = identity(directory).map_err(|error| UserError::at(directory, error, fix))?;
    let here = |pid: &i32| identity(format!("/proc/{pid}/cwd")).is_ok_and(|works| works == place);
    let engines = rules::all().filter(|rules| rules.works_in_data_directory);
    let pids = engines.flat_map(|rules| processes::first_processes(&rules.programs));
    let shown = directory.display();
    only(
        pids.filter(here).collect(),
        format!("--data-dir: no database works in {shown}"),
        format!("--data-dir: several databases work in {shown}"),
    )
}

fn pid_of_engine(name: &str) -> Result<i32, UserError> {
    let programs = rules::load(name)?.programs;
    only(
        processes::first_processes(&programs),
        format!("--engine: no process named {} runs", programs.join(" or ")),
        format!("--engine: several servers of {name} run"),
    )
}

fn only(pids: Vec<i32>, none: String, several: String) -> Result<i32, UserError> {
    match pids[..] {
        [pid] => Ok(pid),
        [] => Err(UserError::new(none, "start it, or give --pid")),
        _ => {
            let message = format!("{several}: {}", listed(&pids));
            Err(UserError::new(message, "choose one with --pid"))
        }
    }
}

/// Servers in words, with all that tells them apart.
#[must_use]
pub fn listed(pids: &[i32]) -> String {
    let sockets = Sockets::now();
    let shown = pids.iter().map(|&pid| {
        let rules = rules::of_program(&processes::program_of(pid));
        let server = rules.map(|rules| Server::of(pid, rules, &root_of(pid), &sockets));
        server.map_or_else(|| pid.to_string(), |server| server.to_string())
    });
    shown.collect::<Vec<_>>().join("; ")
}

/// Root of a process's files as seen by this process.
#[must_use]
pub fn root_of(pid: i32) -> PathBuf {
    let theirs = PathBuf::from(format!("/proc/{pid}/root"));
    let own = PathBuf::from("/");
    let Ok(root) = identity(&theirs) else {
        return own;
    };
    let same_root = identity(&own).is_ok_and(|own| own == root);
    match same_root && processes::shares_namespace(pid, "mnt") {
        true => own,
        false => theirs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_database_is_told_with_the_option() {
        let told = |wanted| Target::find(&wanted, None, &[]).err().unwrap().message;
        assert!(told(Wanted::Pid(1 << 30)).contains("--pid: there is no process"));
        assert!(told(Wanted::Engine("versant".into())).contains("--engine: no process named"));
        let here = std::env::temp_dir();
        assert!(told(Wanted::DataDirectory(here)).contains("--data-dir: no database works in"));
        let own = Wanted::Pid(std::process::id().cast_signed());
        assert!(told(own).contains("is of no engine"));
    }

    #[test]
    fn several_servers_are_listed_and_none_is_guessed() {
        let several = only(vec![7, 9], "none".into(), "two run".into()).unwrap_err();
        assert_eq!(several.message, "two run: 7; 9");
        assert_eq!(only(vec![7], "none".into(), "two".into()), Ok(7));
    }
}
