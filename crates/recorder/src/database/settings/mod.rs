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
use crate::host::paths::{entries, text_within, within};
use crate::host::processes;

/// Values by the engine's own names, in the form that the engine gives over SQL.
pub type Settings = BTreeMap<String, String>;

/// Longest configuration file that is read.
const MOST_BYTES: u64 = 1 << 20;
/// Most configuration files, and how deep they may name each other.
const MOST_FILES: usize = 200;
const DEEPEST: u32 = 10;
/// Kept as said or not: its value names hosts.
const NAMES_HOSTS: &str = "synchronous_standby_names";

/// The settings that the rules name, of the server with a pid whose files have that root.
#[must_use]
pub fn settings_of(pid: i32, rules: &Rules, root: &Path) -> Settings {
    let mut settings = all_of(pid, rules, root);
    settings.retain(|name, _| rules.settings.contains(name));
    hide_hosts(&mut settings);
    settings
}

fn hide_hosts(settings: &mut Settings) {
    if let Some(value) = settings.get_mut(NAMES_HOSTS)
        && !value.trim().is_empty()
    {
        "set".clone_into(value);
    }
}

/// Roles of files by where the server's settings and links put them: patterns that go before those of the rules.
#[must_use]
pub fn roles_of(pid: i32, rules: &Rules, root: &Path) -> Vec<(String, Role)> {
    let Some(directory) = data_directory(pid, rules) else {
        return Vec::new();
    };
    match rules.counters.as_deref() {
        Some("postgresql") => postgres::roles(&directory, root),
        Some("mysql") => mysql::roles(&all_of(pid, rules, root)),
        _ => Vec::new(),
    }
}

fn all_of(pid: i32, rules: &Rules, root: &Path) -> Settings {
    let words = processes::command_line(pid);
    let directory = data_directory(pid, rules);
    match rules.counters.as_deref() {
        Some("postgresql") => postgres::settings(&words, directory.as_deref(), root),
        Some("mysql") => mysql::settings(&words, directory.as_deref(), root),
        _ => Settings::new(),
    }
}

/// What a line of a configuration file says.
enum Line {
    Setting(String, String),
    /// The path of another file.
    Include(String),
    /// The path of a directory of other files.
    IncludeAll(String),
}

/// Settings in configuration files as the server sees them; the last one counts.
struct Files<'a> {
    root: &'a Path,
    parse: fn(&str) -> Vec<Line>,
    /// Of the names of files in directories.
    ending: &'a str,
    left: usize,
    settings: Settings,
}

impl<'a> Files<'a> {
    fn new(root: &'a Path, parse: fn(&str) -> Vec<Line>, ending: &'a str) -> Self {
        Self {
            root,
            parse,
            ending,
            left: MOST_FILES,
            settings: Settings::new(),
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
                Line::Setting(name, value) => _ = self.settings.insert(name, value),
                Line::Include(file) => self.read(&beside.join(file), depth + 1),
                Line::IncludeAll(directory) => {
                    for file in self.listed(&beside.join(directory)) {
                        self.read(&file, depth + 1);
                    }
                }
            }
        }
    }

    fn text(&mut self, path: &Path) -> Option<String> {
        self.left = self.left.checked_sub(1)?;
        text_within(self.root, path, MOST_BYTES)
    }

    /// Files of a directory, in order of their names.
    fn listed(&self, directory: &Path) -> Vec<PathBuf> {
        let names = entries(within(self.root, directory)).map(|entry| entry.file_name());
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
            let mut settings = Settings::from(lines);
            hide_hosts(&mut settings);
            let expected = (kept, "off");
            assert_eq!((&*settings[NAMES_HOSTS], &*settings["fsync"]), expected);
        }
    }
}
