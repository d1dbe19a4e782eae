//! Settings of a server from its command line and its configuration files, without asking or running it.
//!
//! They are what a restart would give: a file that was changed since, and a value set in a session, cannot be told.

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
    let all = all_of(pid, rules, root);
    let wanted = all
        .into_iter()
        .filter(|(name, _)| rules.settings.contains(name));
    let kept = |(name, value): (String, String)| {
        let value = kept(&name, value);
        (name, value)
    };
    wanted.map(kept).collect()
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
    let mut files = Files::new(root);
    match rules.counters.as_deref() {
        Some("postgresql") => postgres::settings(&words, directory.as_deref(), &mut files),
        Some("mysql") => mysql::settings(&words, directory.as_deref(), &mut files),
        _ => Settings::new(),
    }
}

fn kept(name: &str, value: String) -> String {
    match name {
        NAMES_HOSTS if !value.trim().is_empty() => "set".to_owned(),
        _ => value,
    }
}

struct Files<'a> {
    root: &'a Path,
    left: usize,
}

impl<'a> Files<'a> {
    fn new(root: &'a Path) -> Self {
        Self {
            root,
            left: MOST_FILES,
        }
    }

    fn read(&mut self, path: &Path) -> Option<String> {
        self.left = self.left.checked_sub(1)?;
        text_within(self.root, path, MOST_BYTES)
    }

    /// Files of a directory with that ending, in order of their names.
    fn listed(&self, directory: &Path, ending: &str) -> Vec<PathBuf> {
        let names = entries(within(self.root, directory)).map(|entry| entry.file_name());
        let fits = |name: &str| name.ends_with(ending) && !name.starts_with('.');
        let found = names.filter(|name| name.to_str().is_some_and(fits));
        let found = found.map(|name| directory.join(name)).take(MOST_FILES);
        found.sorted().collect()
    }
}

/// Escapes what a regular expression would read as a sign.
pub fn escaped(path: &Path) -> String {
    let text = path.to_string_lossy();
    let sign = |letter: char| !letter.is_alphanumeric() && !"/_".contains(letter);
    let parts = text.chars().map(|letter| match sign(letter) {
        true => format!("\\{letter}"),
        false => letter.to_string(),
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hosts_are_not_kept() {
        let told = |value: &str| kept(NAMES_HOSTS, value.to_owned());
        assert_eq!(
            (told("FIRST 1 (db2)"), told("")),
            ("set".to_owned(), String::new())
        );
        assert_eq!(kept("fsync", "off".to_owned()), "off");
    }

    #[test]
    fn signs_of_patterns_are_escaped() {
        assert_eq!(escaped(Path::new("/a.b/c-1+")), "/a\\.b/c\\-1\\+");
    }
}
