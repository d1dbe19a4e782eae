//! Settings of a server from its command line and its configuration files, without asking or running it.
//!
//! They are what a restart would give: a file that was changed since, and a value set in a session, are not seen.

mod mysql;
mod postgres;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use itertools::Itertools;
use tierwise_recording::{Role, Rules};

use crate::host::files::data_directory;
use crate::host::paths::{bounded_file_text, directory_entries, path_within_root};
use crate::host::processes;

/// Values by the engine's own names, in the form that the engine gives over SQL.
pub type ServerSettings = BTreeMap<String, String>;

/// Longest configuration file that is read.
const MOST_BYTES: u64 = 1 << 20;
/// Most configuration files, and how deep they may name each other.
const MOST_FILES: usize = 200;
const DEEPEST: u32 = 10;
/// Kept as said or not: its value names hosts.
const NAMES_HOSTS: &str = "synchronous_standby_names";

/// Said of a server that is a standby.
pub const STANDBY: &str = "the server is a standby: answers leave its replay of the log out, which may fall behind on a slow device";

/// What its files say of a server that answers leave out.
#[must_use]
pub fn server_warnings(pid: i32, rules: &Rules, root: &Path) -> Vec<String> {
    let is_postgres = rules.counters.as_deref() == Some("postgresql");
    let directory = data_directory(pid, rules).filter(|_| is_postgres);
    let standby = directory.is_some_and(|directory| postgres::is_standby(&directory, root));
    standby.then(|| STANDBY.to_owned()).into_iter().collect()
}

/// Number of the server's replication slots, which keep its log; none of an engine that has none.
#[must_use]
pub fn replication_slots(directory: &Path, rules: &Rules, root: &Path) -> Option<u32> {
    let is_postgres = rules.counters.as_deref() == Some("postgresql");
    is_postgres.then(|| postgres::replication_slots(directory, root))?
}

/// The settings that the rules name, of the server with a pid whose files have that root.
#[must_use]
pub fn server_settings(pid: i32, rules: &Rules, root: &Path) -> ServerSettings {
    let mut settings = all_server_settings(pid, rules, root);
    settings.retain(|name, _| rules.settings.contains(name));
    hide_host_settings(&mut settings);
    settings
}

fn hide_host_settings(settings: &mut ServerSettings) {
    if let Some(value) = settings.get_mut(NAMES_HOSTS)
        && !value.trim().is_empty()
    {
        "set".clone_into(value);
    }
}

/// Roles of files by where the server's settings and links put them: patterns that go before those of the rules.
#[must_use]
pub fn roles_by_settings(pid: i32, rules: &Rules, root: &Path) -> Vec<(String, Role)> {
    let Some(directory) = data_directory(pid, rules) else {
        return Vec::new();
    };
    match rules.counters.as_deref() {
        Some("postgresql") => postgres::wal_file_roles(&directory, root),
        Some("mysql") => mysql::tablespace_roles(&all_server_settings(pid, rules, root)),
        _ => Vec::new(),
    }
}

fn all_server_settings(pid: i32, rules: &Rules, root: &Path) -> ServerSettings {
    let words = processes::command_line(pid);
    let directory = data_directory(pid, rules);
    match rules.counters.as_deref() {
        Some("postgresql") => postgres::postgres_settings(&words, directory.as_deref(), root),
        Some("mysql") => mysql::mysql_settings(&words, directory.as_deref(), root),
        _ => ServerSettings::new(),
    }
}

/// What a line of a configuration file says.
enum ConfigLine {
    Setting(String, String),
    /// The path of another file.
    Include(String),
    /// The path of a directory of other files.
    IncludeAll(String),
}

/// Settings in configuration files as the server sees them; the last one counts.
struct ConfigFiles<'a> {
    root: &'a Path,
    parse: fn(&str) -> Vec<ConfigLine>,
    /// Of the names of files in directories.
    ending: &'a str,
    left: usize,
    settings: ServerSettings,
}

impl<'a> ConfigFiles<'a> {
    fn new(root: &'a Path, parse: fn(&str) -> Vec<ConfigLine>, ending: &'a str) -> Self {
        Self {
            root,
            parse,
            ending,
            left: MOST_FILES,
            settings: ServerSettings::new(),
        }
    }

    /// Reads a file and those that it names.
    fn read(&mut self, path: &Path, depth: u32) {
        let Some(text) = self.text(path).filter(|_| depth <= DEEPEST) else {
            return;
        };
        let beside = path.parent().unwrap_or(Path::new("/"));
        for line in (self.parse)(&text) {
            match line {
                ConfigLine::Setting(name, value) => _ = self.settings.insert(name, value),
                ConfigLine::Include(file) => self.read(&beside.join(file), depth + 1),
                ConfigLine::IncludeAll(directory) => {
                    for file in self.listed(&beside.join(directory)) {
                        self.read(&file, depth + 1);
                    }
                }
            }
        }
    }

    fn text(&mut self, path: &Path) -> Option<String> {
        self.left = self.left.checked_sub(1)?;
        bounded_file_text(self.root, path, MOST_BYTES)
    }

    /// Files of a directory, in order of their names.
    fn listed(&self, directory: &Path) -> Vec<PathBuf> {
        let names = directory_entries(path_within_root(self.root, directory))
            .map(|entry| entry.file_name());
        let fits = |name: &str| name.ends_with(self.ending) && !name.starts_with('.');
        let found = names.filter(|name| name.to_str().is_some_and(fits));
        let found = found.map(|name| directory.join(name)).take(MOST_FILES);
        found.sorted().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hosts_are_not_kept() {
        for (value, kept) in [("FIRST 1 (db2)", "set"), ("", "")] {
            let lines = [(NAMES_HOSTS, value), ("fsync", "off")];
            let lines = lines.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let mut settings = ServerSettings::from(lines);
            hide_host_settings(&mut settings);
            let expected = (kept, "off");
            assert_eq!((&*settings[NAMES_HOSTS], &*settings["fsync"]), expected);
        }
    }
}
