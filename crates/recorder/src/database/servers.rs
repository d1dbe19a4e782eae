//! What tells one server of a host from another: port, socket, data directory, version, container.

use std::path::{Path, PathBuf};
use std::{fmt, fs};

use tierwise_recording::{ClientKind, Role, Rules};

use crate::UserError;
use crate::database::clients::{client_kind_of_program, is_database_server_name};
use crate::database::{rules, settings};
use crate::host::files::data_directory;
use crate::host::paths::{bounded_file_text, file_identity};
use crate::host::processes::{self, OpenFile, ProcessIdentity, ProcessTree, open_files};
use crate::host::sockets::SocketTable;

/// A running server, as `/proc` and its files tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatabaseServer {
    /// Its first process.
    pub pid: i32,
    /// Name of its engine.
    pub engine: String,
    /// As the data directory or the path of the program tells it.
    pub version: Option<String>,
    /// Ports of TCP on which it listens.
    pub ports: Vec<u16>,
    /// Paths of its Unix sockets.
    pub sockets: Vec<String>,
    /// As the server sees it.
    pub data_directory: Option<PathBuf>,
    /// Whether it has process numbers or a control group of a container.
    pub in_container: bool,
}

/// Files of a data directory that begin with the version of the server that wrote them.
const VERSION_FILES: [&str; 3] = ["PG_VERSION", "mariadb_upgrade_info", "mysql_upgrade_info"];
const MOST_VERSION_BYTES: u64 = 60;

impl DatabaseServer {
    /// The server with a pid, whose files have that root.
    #[must_use]
    pub fn of(pid: i32, rules: &Rules, root: &Path, sockets: &SocketTable) -> Self {
        let listening = sockets.listening(&[pid]);
        let directory = data_directory(pid, rules);
        Self {
            pid,
            engine: engine_of_processes(&[pid], rules),
            version: server_version(pid, directory.as_deref(), root),
            ports: listening.ports.into_iter().collect(),
            sockets: listening.paths.into_iter().collect(),
            data_directory: directory,
            in_container: in_container(pid),
        }
    }
}

impl fmt::Display for DatabaseServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut facts = vec![match &self.version {
            Some(version) => format!("{} {version}", self.engine),
            None => self.engine.clone(),
        }];
        facts.extend(self.ports.iter().map(|port| format!("port {port}")));
        facts.extend(self.sockets.iter().map(|path| format!("socket {path}")));
        let directory = self.data_directory.iter();
        facts.extend(directory.map(|path| format!("data directory {}", path.display())));
        if self.in_container {
            facts.push("in a container".to_owned());
        }
        write!(formatter, "pid {}, {}", self.pid, facts.join(", "))
    }
}

/// Files that MySQL has open from 8.0 on; MariaDB has none of that name.
const MYSQL_FILES: [&str; 2] = ["mysql.ibd", "undo_001"];

/// Name of the engine of running processes: MySQL has the programs and the rules of MariaDB.
#[must_use]
pub fn engine_of_processes(pids: &[i32], rules: &Rules) -> String {
    let of_mysql = |file: OpenFile| {
        let name = Path::new(&file.path).file_name();
        name.is_some_and(|name| MYSQL_FILES.iter().any(|known| name == *known))
    };
    let has_one = |pid: &i32| open_files(*pid).into_iter().any(of_mysql);
    match rules.engine.as_str() {
        "mariadb" if pids.iter().any(has_one) => "mysql".to_owned(),
        name => name.to_owned(),
    }
}

fn server_version(pid: i32, directory: Option<&Path>, root: &Path) -> Option<String> {
    let written = directory.and_then(|directory| {
        let mut files = VERSION_FILES.iter();
        files.find_map(|name| {
            let text = bounded_file_text(root, &directory.join(name), MOST_VERSION_BYTES)?;
            plausible_version(text.split_whitespace().next()?)
        })
    });
    written.or_else(|| {
        let program = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
        let mut parts = program.iter().filter_map(|part| part.to_str());
        parts.find_map(plausible_version)
    })
}

/// A version: it begins with a digit and has nothing but letters, digits and a few signs.
fn plausible_version(text: &str) -> Option<String> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || ".-+~".contains(letter);
    let begins = text.starts_with(|letter: char| letter.is_ascii_digit());
    (begins && text.chars().all(fits)).then(|| text.to_owned())
}

/// Whether a process has process numbers of its own, or a control group that a container's manager made.
fn in_container(pid: i32) -> bool {
    if !processes::shares_namespace(pid, "pid") {
        return true;
    }
    let groups = processes::file_text(format!("/proc/{pid}/cgroup"));
    let managers = ["/docker", "/containerd", "/kubepods", "/libpod", "/lxc"];
    let own = processes::file_text("/proc/self/cgroup");
    managers.iter().any(|name| groups.contains(name)) && groups != own
}

// The database that is recorded: its processes, its rules, the root of its files.

/// Which database is wanted.
#[derive(Clone, Debug)]
pub enum WantedDatabase {
    /// The one whose first process has this pid.
    Pid(i32),
    /// The one that works in this data directory.
    DataDirectory(PathBuf),
    /// The only one of this engine on the machine.
    Engine(String),
}

pub struct FoundDatabase {
    pub pid: i32,
    pub rules: Rules,
    /// Root of its files, as seen by this process; a container has its own.
    pub root: PathBuf,
}

impl FoundDatabase {
    /// Finds it; `chosen` are rules in place of those of its program, `roles` go before all rules: path, role.
    ///
    /// # Errors
    /// If it does not run, several do, there are no rules for it, or it is a client.
    pub fn find(
        wanted: &WantedDatabase,
        chosen: Option<&str>,
        roles: &[(String, Role)],
    ) -> Result<Self, UserError> {
        let chosen = chosen.map(rules::load_engine_rules).transpose()?;
        let pid = match wanted {
            WantedDatabase::Pid(pid) => *pid,
            WantedDatabase::DataDirectory(directory) => server_pid_in_directory(directory)?,
            WantedDatabase::Engine(name) => server_pid_of_engine(name)?,
        };
        if ProcessIdentity::of(pid).is_none() {
            return Err(UserError::new(
                format!("--pid: there is no process {pid}"),
                "give the pid of the database's first process",
            ));
        }
        let program = processes::program_name(pid);
        if client_kind_of_program(&program).is_some_and(|kind| kind != ClientKind::Replica) {
            let problem = "is a client: it has no database files of its own";
            return Err(UserError::new(
                format!("--pid: process {pid} ({program}) {problem}"),
                "give the pid of its server",
            ));
        }
        require_first_process(pid, &program)?;
        let Some(rules) = chosen.or_else(|| rules::rules_of_program(&program).cloned()) else {
            let known = rules::shipped_engine_names();
            return Err(UserError::new(
                format!("--pid: process {pid} ({program}) is of no engine that tierwise knows"),
                format!("give --rules with one of {known}, or a TOML file"),
            ));
        };
        let root = process_root(pid);
        require_visible_files(pid, &rules, &root)?;
        let named = roles.iter().cloned();
        let found = settings::roles_by_settings(pid, &rules, &root);
        let first: Vec<_> = named.chain(found).collect();
        Ok(Self {
            pid,
            rules: rules.after(&first, "--role")?,
            root,
        })
    }

    pub fn server(&self) -> DatabaseServer {
        DatabaseServer::of(self.pid, &self.rules, &self.root, &SocketTable::now())
    }

    /// Its current processes, with everything they started.
    pub fn processes(&self) -> Vec<i32> {
        ProcessTree::now().with_descendants(&[self.pid])
    }

    /// Pid of the process whose mounts count; none for this process's mounts.
    pub fn mounts_of(&self) -> Option<i32> {
        (self.root != Path::new("/")).then_some(self.pid)
    }
}

/// Refuses a thread, and a process that a server has started: it does a part of the server's work.
///
/// # Errors
/// If it is one of these, naming the first process.
pub fn require_first_process(pid: i32, program: &str) -> Result<(), UserError> {
    let process = processes::process_of_thread(pid).unwrap_or(pid);
    let first = ProcessTree::now().first_of(process, is_database_server_name);
    let first = first.unwrap_or(process);
    if first == pid {
        return Ok(());
    }
    let what = if process == pid { "child" } else { "thread" };
    Err(UserError::new(
        format!(
            "--pid: {pid} ({program}) is a {what} of process {first}, and a recording of it would lack the rest"
        ),
        format!("give --pid {first}"),
    ))
}

/// Refuses a process to whose files the kernel's paths do not lead: their devices would be others'.
///
/// # Errors
/// If it is in a chroot, or its data directory is not at its path.
pub fn require_visible_files(pid: i32, rules: &Rules, root: &Path) -> Result<(), UserError> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let Ok(top) = fs::read_link(process.join("root")) else {
        return Ok(()); // It has ended, or is another user's: refused later.
    };
    if top != Path::new("/") {
        return Err(UserError::new(
            format!(
                "--pid: process {pid} has the root directory {} (chroot): where its files lie is not known",
                top.display()
            ),
            "run tierwise record within that root, where /proc and /sys are mounted, or tierwise observe",
        ));
    }
    let Some(directory) = data_directory(pid, rules) else {
        return Ok(());
    };
    let place = root.join(directory.strip_prefix("/").unwrap_or(&directory));
    let same = file_identity(place).ok() == file_identity(process.join("cwd")).ok();
    if !same {
        return Err(UserError::new(
            format!(
                "--pid: the data directory of process {pid} is not what {} is now: it was removed, or something is mounted over it",
                directory.display()
            ),
            "unmount that, or restart the server, then record",
        ));
    }
    Ok(())
}

/// The only server that works in a directory, which the rules of its engine call its data directory.
fn server_pid_in_directory(directory: &Path) -> Result<i32, UserError> {
    let fix = "name the data directory of a running database";
    let place = file_identity(directory).map_err(|error| UserError::at(directory, error, fix))?;
    let here =
        |pid: &i32| file_identity(format!("/proc/{pid}/cwd")).is_ok_and(|works| works == place);
    let engines = rules::all_engine_rules().filter(|rules| rules.works_in_data_directory);
    let pids = engines.flat_map(|rules| processes::first_processes(&rules.programs));
    let shown = directory.display();
    require_single_server(
        pids.filter(here).collect(),
        format!("--data-dir: no database works in {shown}"),
        format!("--data-dir: several databases work in {shown}"),
    )
}

fn server_pid_of_engine(name: &str) -> Result<i32, UserError> {
    let rules = rules::load_engine_rules(name)?;
    let mut pids = processes::first_processes(&rules.programs);
    let mut none = format!("no process named {} runs", rules.programs.join(" or "));
    let (alias, original) = rules::ALIAS;
    if [alias, original].contains(&name) {
        let others = pids.clone();
        pids.retain(|&pid| engine_of_processes(&[pid], &rules) == name);
        if !others.is_empty() {
            let listed = server_list_text(&others);
            none = format!("no server of {name} runs, but {listed}");
        }
    }
    require_single_server(
        pids,
        format!("--engine: {none}"),
        format!("--engine: several servers of {name} run"),
    )
}

fn require_single_server(pids: Vec<i32>, none: String, several: String) -> Result<i32, UserError> {
    match pids[..] {
        [pid] => Ok(pid),
        [] => Err(UserError::new(none, "start it, or give --pid")),
        _ => {
            let message = format!("{several}: {}", server_list_text(&pids));
            Err(UserError::new(message, "choose one with --pid"))
        }
    }
}

/// Servers in words, with all that tells them apart.
#[must_use]
pub fn server_list_text(pids: &[i32]) -> String {
    let sockets = SocketTable::now();
    let shown = pids.iter().map(|&pid| {
        let rules = rules::rules_of_program(&processes::program_name(pid));
        let server =
            rules.map(|rules| DatabaseServer::of(pid, rules, &process_root(pid), &sockets));
        server.map_or_else(|| pid.to_string(), |server| server.to_string())
    });
    shown.collect::<Vec<_>>().join("; ")
}

/// Root of a process's files as seen by this process.
#[must_use]
pub fn process_root(pid: i32) -> PathBuf {
    let theirs = PathBuf::from(format!("/proc/{pid}/root"));
    let own = PathBuf::from("/");
    let Ok(root) = file_identity(&theirs) else {
        return own;
    };
    let same_root = file_identity(&own).is_ok_and(|own| own == root);
    match same_root && processes::shares_namespace(pid, "mnt") {
        true => own,
        false => theirs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_told_by_all_that_differs() {
        let server = DatabaseServer {
            pid: 4711,
            engine: "postgres".to_owned(),
            version: Some("15".to_owned()),
            ports: vec![5432],
            sockets: vec!["/tmp/.s.PGSQL.5432".to_owned()],
            data_directory: Some("/srv/pg".into()),
            in_container: true,
        };
        assert_eq!(
            server.to_string(),
            "pid 4711, postgres 15, port 5432, socket /tmp/.s.PGSQL.5432, data directory /srv/pg, in a container"
        );
    }

    #[test]
    fn mysql_is_known_by_its_dictionary() {
        let data = tempfile::tempdir().unwrap();
        let rules = rules::load_engine_rules("mariadb").unwrap();
        let own = std::process::id().cast_signed();
        let name = || engine_of_processes(&[own], &rules);
        assert_eq!(name(), "mariadb");
        let _dictionary = fs::File::create(data.path().join("mysql.ibd")).unwrap();
        assert_eq!(name(), "mysql");
    }

    #[test]
    fn only_what_looks_like_a_version_is_one() {
        let expected = Some("10.11.19-MariaDB");
        assert_eq!(plausible_version("10.11.19-MariaDB").as_deref(), expected);
        assert_eq!(plausible_version("root:x:0:0"), None);
        assert_eq!(plausible_version("15\u{1b}[2J"), None);
    }

    #[test]
    fn what_is_no_database_is_told_with_the_option() {
        let message = |wanted| {
            FoundDatabase::find(&wanted, None, &[])
                .err()
                .unwrap()
                .message
        };
        assert!(message(WantedDatabase::Pid(1 << 30)).contains("--pid: there is no process"));
        assert!(
            message(WantedDatabase::Engine("versant".into()))
                .contains("--engine: no process named")
        );
        let here = std::env::temp_dir();
        assert!(
            message(WantedDatabase::DataDirectory(here))
                .contains("--data-dir: no database works in")
        );
        let own = WantedDatabase::Pid(std::process::id().cast_signed());
        assert!(message(own).contains("is of no engine"));
        let thread = std::thread::spawn(|| {
            let number = rustix::thread::gettid().as_raw_nonzero().get();
            FoundDatabase::find(&WantedDatabase::Pid(number), None, &[])
                .err()
                .unwrap()
                .message
        });
        let refused = thread.join().unwrap();
        assert!(refused.contains(&format!("is a thread of process {}", std::process::id())));
    }

    #[test]
    fn several_servers_are_listed_and_none_is_guessed() {
        let several =
            require_single_server(vec![7, 9], "none".into(), "two run".into()).unwrap_err();
        assert_eq!(several.message, "two run: 7; 9");
        assert_eq!(
            require_single_server(vec![7], "none".into(), "two".into()),
            Ok(7)
        );
    }
}
