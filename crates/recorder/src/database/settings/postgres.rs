//! PostgreSQL: postgresql.conf with its includes, postgresql.auto.conf, then the command line.
//!
//! Source: PostgreSQL documentation, 'Setting Parameters'; src/backend/utils/misc/guc-file.l.

use std::path::Path;

use tierwise_recording::Role;

use super::{ConfigFiles, ConfigLine, ServerSettings};
use crate::database::rules::escaped_for_regex;
use crate::host::paths::{self, file_beginning, path_within_root};

/// State of a server in its control file, and where that is. Source: `ControlFileData` in
/// src/include/catalog/pg_control.h.
const STATE_OFFSET: usize = 16;
const IN_ARCHIVE_RECOVERY: u32 = 5;

/// Units of numbers that are written without one. Source: the column `unit` of `pg_settings`.
const UNITS: [(&str, u64, &str); 10] = [
    ("shared_buffers", 8, "kB"),
    ("wal_buffers", 8, "kB"),
    ("work_mem", 1, "kB"),
    ("max_wal_size", 1, "MB"),
    ("min_wal_size", 1, "MB"),
    ("wal_keep_size", 1, "MB"),
    ("max_slot_wal_keep_size", 1, "MB"),
    ("checkpoint_timeout", 1, "s"),
    ("wal_writer_delay", 1, "ms"),
    ("bgwriter_delay", 1, "ms"),
];

pub fn postgres_settings(
    words: &[String],
    directory: Option<&Path>,
    root: &Path,
) -> ServerSettings {
    let given = command_line_settings(words);
    let mut files = ConfigFiles::new(root, parse_postgres_config, ".conf");
    let given_directory = given.get("data_directory").map(Path::new);
    if let Some(directory) = given_directory.or(directory) {
        let main = given
            .get("config_file")
            .map_or("postgresql.conf", |main| main);
        files.read(&directory.join(main), 0);
        files.read(&directory.join("postgresql.auto.conf"), 0);
    }
    let mut settings = files.settings;
    settings.extend(given);
    for (name, value) in &mut settings {
        *value = setting_with_unit(name, value);
    }
    settings
}

/// Whether a server with that data directory replays the log of another one.
pub fn is_standby(directory: &Path, root: &Path) -> bool {
    let control = path_within_root(root, &directory.join("global/pg_control"));
    let bytes = file_beginning(&control, STATE_OFFSET as u64 + 4).unwrap_or_default();
    let state = bytes.get(STATE_OFFSET..).and_then(<[u8]>::first_chunk);
    state.is_some_and(|state| u32::from_ne_bytes(*state) == IN_ARCHIVE_RECOVERY)
}

/// Number of the replication slots of a server with that data directory; none if it has no directory for them.
pub fn replication_slots(directory: &Path, root: &Path) -> Option<u32> {
    let slots = path_within_root(root, &directory.join("pg_replslot"));
    let slots = std::fs::read_dir(slots).ok()?.flatten();
    u32::try_from(slots.count()).ok()
}

fn parse_postgres_config(text: &str) -> Vec<ConfigLine> {
    let lines = text.lines().filter_map(config_name_and_value);
    let lines = lines.map(|(name, value)| match name.as_str() {
        "include" | "include_if_exists" => ConfigLine::Include(value),
        "include_dir" => ConfigLine::IncludeAll(value),
        _ => ConfigLine::Setting(name, value),
    });
    lines.collect()
}

/// Name and value of a line; none of a comment.
fn config_name_and_value(text: &str) -> Option<(String, String)> {
    let text = text.trim_start();
    let end = text.find(|letter: char| letter.is_whitespace() || letter == '=')?;
    let (name, rest) = text.split_at(end);
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '.';
    let named = !name.is_empty() && name.chars().all(fits);
    named.then(|| (name.to_ascii_lowercase(), config_value(rest)))
}

/// A value with or without quotes, up to a comment.
fn config_value(text: &str) -> String {
    let Some(quoted) = text.strip_prefix('\'') else {
        let end = text.find(|letter: char| letter == '#' || letter.is_whitespace());
        return text[..end.unwrap_or(text.len())].to_owned();
    };
    let (mut value, mut letters) = (String::new(), quoted.chars().peekable());
    while let Some(letter) = letters.next() {
        match letter {
            '\'' if letters.peek() != Some(&'\'') => break,
            '\'' | '\\' => value.extend(letters.next()),
            letter => value.push(letter),
        }
    }
    value
}

/// Settings of the command line: `-c name=value`, `--name=value`, and the letters that stand for some.
fn command_line_settings(words: &[String]) -> ServerSettings {
    let pair = |text: &str| {
        let (name, value) = text.split_once('=')?;
        Some((name.replace('-', "_"), value.to_owned()))
    };
    let mut given = ServerSettings::new();
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        let mut letters = word.chars();
        let option = match (letters.next(), letters.next()) {
            (Some('-'), Some('-')) => pair(letters.as_str()),
            (Some('-'), Some('F')) if word == "-F" => Some(("fsync".to_owned(), "off".to_owned())),
            (Some('-'), Some(letter @ ('c' | 'B' | 'D' | 'S'))) => {
                let text = match letters.as_str() {
                    "" => words.next().cloned().unwrap_or_default(),
                    rest => rest.to_owned(),
                };
                match letter {
                    'B' => Some(("shared_buffers".to_owned(), text)),
                    'D' => Some(("data_directory".to_owned(), text)),
                    'S' => Some(("work_mem".to_owned(), text)),
                    _ => pair(&text),
                }
            }
            _ => None,
        };
        given.extend(option.map(|(name, value)| (name.to_ascii_lowercase(), value)));
    }
    given
}

/// The value with its unit, as `SHOW` gives it.
fn setting_with_unit(name: &str, value: &str) -> String {
    let known = UNITS.iter().find(|(known, _, _)| *known == name);
    let (Some((_, each, unit)), Ok(number)) = (known, value.parse::<u64>()) else {
        return value.to_owned();
    };
    format!("{}{unit}", number.saturating_mul(*each))
}

/// Files of the log are those where `pg_wal` leads. Others of such names are copies: an archive.
pub fn wal_file_roles(directory: &Path, root: &Path) -> Vec<(String, Role)> {
    let place = paths::path_within_root(root, &directory.join("pg_wal"));
    let Ok(seen) = place.strip_prefix(root) else {
        return Vec::new();
    };
    if !place.is_dir() {
        return Vec::new();
    }
    let log = Path::new("/").join(seen);
    vec![
        (format!("^{}/", escaped_for_regex(&log)), Role::Log),
        (r"/pg_wal/".to_owned(), Role::Log),
        (
            r"/[0-9A-F]{24}(\.partial)?(\.(gz|lz4|zst|bz2|xz))?$".to_owned(),
            Role::Archive,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standby_is_known_by_its_control_file() {
        let data = tempfile::tempdir().unwrap();
        let directory = data.path();
        let root = Path::new("/");
        assert!(!is_standby(directory, root));
        std::fs::create_dir(directory.join("global")).unwrap();
        for (state, expected) in [(5_u32, true), (6, false)] {
            let control = [&[0; STATE_OFFSET][..], &state.to_ne_bytes(), &[5; 400]].concat();
            std::fs::write(directory.join("global/pg_control"), control).unwrap();
            assert_eq!(is_standby(directory, root), expected);
        }
    }

    #[test]
    fn replication_slots_are_directories() {
        let data = tempfile::tempdir().unwrap();
        let root = Path::new("/");
        assert_eq!(replication_slots(data.path(), root), None);
        std::fs::create_dir_all(data.path().join("pg_replslot/standby_1")).unwrap();
        assert_eq!(replication_slots(data.path(), root), Some(1));
    }
    use std::fs;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_line_is_read_as_the_server_reads_it() {
        let read =
            |text| config_name_and_value(text).map(|(name, value)| format!("{name}|{value}"));
        for (text, expected) in [
            ("commit_delay = 20000", "commit_delay|20000"),
            ("  FSync off # no", "fsync|off"),
            ("a='it''s \\'x\\' # y' # z", "a|it's 'x' # y"),
            ("a=''", "a|"),
        ] {
            assert_eq!(read(text).as_deref(), Some(expected));
        }
        assert_eq!(read("# a = 1"), None);
        assert_eq!(read(""), None);
    }

    #[test]
    fn the_last_one_counts_and_the_command_line_comes_last() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for folder in ["data", "etc/conf.d"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let write = |name: &str, text: &str| fs::write(root.join(name), text).unwrap();
        write(
            "etc/main.conf",
            "shared_buffers = 16384\ncommit_delay = 1\nfsync=on\ninclude_dir 'conf.d'\ninclude 'loop.conf'\n",
        );
        write("etc/loop.conf", "include 'loop.conf'\n");
        write("etc/conf.d/2.conf", "commit_delay = 3\n");
        write("etc/conf.d/1.conf", "commit_delay = 2\nmax_wal_size = 64\n");
        write("etc/conf.d/.hidden.conf", "commit_delay = 9\n");
        write("data/postgresql.auto.conf", "commit_siblings = '0'\n");
        let line = words("postgres -D /data -c config_file=/etc/main.conf --work-mem=4 -F");
        let found = postgres_settings(&line, None, root);
        let value = |name: &str| found.get(name).map(String::as_str);
        assert_eq!(value("shared_buffers"), Some("131072kB"));
        assert_eq!(value("commit_delay"), Some("3"));
        assert_eq!(value("commit_siblings"), Some("0"));
        assert_eq!(value("max_wal_size"), Some("64MB"));
        let expected = (Some("4kB"), Some("off"));
        assert_eq!((value("work_mem"), value("fsync")), expected);
    }

    #[test]
    fn copies_of_the_log_elsewhere_are_an_archive() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("fast/wal")).unwrap();
        fs::create_dir_all(root.join("data")).unwrap();
        std::os::unix::fs::symlink("/fast/wal", root.join("data/pg_wal")).unwrap();
        let text = "engine = \"t\"\nsource = \"\"\nprograms = []\nfile = []";
        let rules = tierwise_recording::Rules::parse(text, "t").unwrap();
        let rules = rules
            .after(&wal_file_roles(Path::new("/data"), root), "test")
            .unwrap();
        let segment = "000000010000000000000001";
        let expected = Some(Role::Log);
        assert_eq!(rules.role_of(&format!("/fast/wal/{segment}")), expected);
        assert_eq!(rules.role_of("/fast/wal/xlogtemp.7"), Some(Role::Log));
        let expected = Some(Role::Archive);
        assert_eq!(rules.role_of(&format!("/archive/{segment}.gz")), expected);
    }
}
