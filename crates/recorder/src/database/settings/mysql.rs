//! MariaDB and MySQL: option files in their groups, persisted variables, then the command line.
//!
//! Source: MariaDB documentation, 'Configuring MariaDB with Option Files'; MySQL reference, 'Using Option Files' and
//! 'Persisted System Variables'.

use std::path::Path;

use serde_json::Value;
use tierwise_recording::Role;

use super::{ConfigFiles, ConfigLine, ServerSettings};
use crate::database::rules::{escaped_for_regex, is_listed_name};

const DEFAULT_FILES: [&str; 2] = ["/etc/my.cnf", "/etc/mysql/my.cnf"];
/// Groups of options that the server reads, separated by spaces.
const GROUPS: &str = "mysqld server mariadb mariadbd client-server galera";
/// Settings that are shown as a number of bytes, separated by spaces.
const SIZES: &str = "innodb_buffer_pool_size innodb_page_size innodb_log_file_size innodb_log_buffer_size \
    innodb_redo_log_capacity max_binlog_size tmp_table_size max_heap_table_size innodb_max_undo_log_size \
    innodb_online_alter_log_max_size";

pub fn mysql_settings(words: &[String], directory: Option<&Path>, root: &Path) -> ServerSettings {
    let option = |name: &str| {
        let prefix = format!("--{name}=");
        let mut values = words.iter().filter_map(|word| word.strip_prefix(&prefix));
        values.next().map(Path::new)
    };
    let mut files = ConfigFiles::new(root, parse_mysql_config, ".cnf");
    if let Some(only) = option("defaults-file") {
        files.read(only, 0);
    } else if !words.iter().any(|word| word == "--no-defaults") {
        let more = option("defaults-extra-file");
        for file in DEFAULT_FILES.into_iter().map(Path::new).chain(more) {
            files.read(file, 0);
        }
    }
    let persisted = directory.map(|directory| directory.join("mysqld-auto.cnf"));
    if let Some(text) = persisted.and_then(|path| files.text(&path)) {
        let tree = serde_json::from_str(&text).unwrap_or(Value::Null);
        add_persisted_settings(&tree, &mut files.settings);
    }
    let given = words.iter().skip(1);
    let given = given.filter_map(|word| word.strip_prefix("--"));
    files
        .settings
        .extend(given.filter_map(option_name_and_value));
    files.settings
}

fn parse_mysql_config(text: &str) -> Vec<ConfigLine> {
    let (mut lines, mut ours) = (Vec::new(), false);
    for line in text.lines().map(str::trim) {
        if let Some(group) = line.strip_prefix('[') {
            ours = server_reads_group(group.split(']').next().unwrap_or_default());
        } else if let Some(directory) = line.strip_prefix("!includedir") {
            lines.push(ConfigLine::IncludeAll(directory.trim().to_owned()));
        } else if let Some(file) = line.strip_prefix("!include") {
            lines.push(ConfigLine::Include(file.trim().to_owned()));
        } else if ours && !line.starts_with(['#', ';']) {
            lines.extend(
                option_name_and_value(line).map(|(name, value)| ConfigLine::Setting(name, value)),
            );
        }
    }
    lines
}

/// Whether the server reads a group; `mysqld-8.0` and `mariadb-10.11` are for one version.
fn server_reads_group(group: &str) -> bool {
    let name = group.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    is_listed_name(GROUPS, name.trim_end_matches('-'))
}

/// Name and value of an option, in the form of `SHOW VARIABLES`.
fn option_name_and_value(text: &str) -> Option<(String, String)> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(unquoted(value))),
        None => (text, None),
    };
    let name = name.trim().to_ascii_lowercase().replace('-', "_");
    let name = name.strip_prefix("loose_").unwrap_or(&name);
    let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if name.is_empty() || !name.chars().all(fits) {
        return None;
    }
    for (prefix, set) in [("skip_", "OFF"), ("disable_", "OFF"), ("enable_", "ON")] {
        if let (Some(rest), None) = (name.strip_prefix(prefix), value) {
            return Some((rest.to_owned(), set.to_owned()));
        }
    }
    Some((name.to_owned(), value_as_shown(name, value)))
}

fn unquoted(text: &str) -> &str {
    let text = text.split(" #").next().unwrap_or_default().trim();
    let inside = |sign: char| text.strip_prefix(sign)?.strip_suffix(sign);
    inside('"').or_else(|| inside('\'')).unwrap_or(text)
}

fn value_as_shown(name: &str, value: Option<&str>) -> String {
    match (name, value) {
        // The name of the file is not kept: whether there is one matters.
        ("log_bin", Some("0" | "OFF" | "off")) => "OFF".to_owned(),
        ("log_bin", _) | (_, None) => "ON".to_owned(),
        (name, Some(value)) if is_listed_name(SIZES, name) => {
            size_with_suffix(value).unwrap_or_else(|| value.to_owned())
        }
        (_, Some(value)) => value.to_owned(),
    }
}

/// A size with the suffix K, M, G or T, in bytes.
fn size_with_suffix(text: &str) -> Option<String> {
    let last = text.chars().last()?.to_ascii_uppercase();
    let shift = 10 * (1 + "KMGT".find(last)? as u32);
    let number: u64 = text[..text.len() - 1].parse().ok()?;
    Some(number.checked_mul(1 << shift)?.to_string())
}

/// Values of a tree of objects: each is at the key "Value" below its name.
fn add_persisted_settings(tree: &Value, settings: &mut ServerSettings) {
    for (name, inner) in tree.as_object().into_iter().flatten() {
        match inner.get("Value") {
            Some(value) => {
                let text = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                settings.insert(name.clone(), value_as_shown(name, Some(&text)));
            }
            None => add_persisted_settings(inner, settings),
        }
    }
}

/// Tablespaces whose names the settings give.
pub fn tablespace_roles(settings: &ServerSettings) -> Vec<(String, Role)> {
    let named = [
        ("innodb_data_file_path", Role::System),
        ("innodb_temp_data_file_path", Role::Temp),
    ];
    let files = named
        .iter()
        .filter_map(|(name, role)| Some((settings.get(*name)?, *role)));
    files
        .flat_map(|(paths, role)| paths.split(';').map(move |path| (path, role)))
        .filter_map(|(path, role)| {
            let name = path.split(':').next()?.rsplit('/').next()?;
            let pattern = format!("/{}$", escaped_for_regex(Path::new(name)));
            (!name.is_empty()).then_some((pattern, role))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn an_option_is_read_as_the_server_reads_it() {
        let read =
            |text| option_name_and_value(text).map(|(name, value)| format!("{name}|{value}"));
        for (text, expected) in [
            ("sync-binlog = 1 # safe", "sync_binlog|1"),
            ("log-bin=/srv/l/b", "log_bin|ON"),
            ("log-bin", "log_bin|ON"),
            ("skip-log-bin", "log_bin|OFF"),
            (
                "innodb_buffer_pool_size='2G'",
                "innodb_buffer_pool_size|2147483648",
            ),
            ("loose-innodb_x=1", "innodb_x|1"),
        ] {
            assert_eq!(read(text).as_deref(), Some(expected));
        }
        assert_eq!(read("= 1"), None);
    }

    #[test]
    fn groups_includes_persisted_values_and_the_command_line() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("etc/mysql/d")).unwrap();
        fs::create_dir(root.join("data")).unwrap();
        let write = |name: &str, text: &str| fs::write(root.join(name), text).unwrap();
        write(
            "etc/mysql/my.cnf",
            "[mysql]\nsync_binlog=9\n[mariadb-10.11]\nsync_binlog=1\n!includedir d\n!include my.cnf\n",
        );
        write(
            "etc/mysql/d/a.cnf",
            "[server]\nbinlog_commit_wait_usec = 100\n[mysqld_safe]\nnice=1\n",
        );
        write(
            "data/mysqld-auto.cnf",
            r#"{"Version": 2, "mysql_dynamic_variables": {"binlog_group_commit_sync_delay": {"Value": "50"}}}"#,
        );
        let line = ["mariadbd", "--innodb-flush-log-at-trx-commit=2"].map(str::to_owned);
        let found = mysql_settings(&line, Some(Path::new("/data")), root);
        let value = |name: &str| found.get(name).map(String::as_str);
        assert_eq!(value("sync_binlog"), Some("1"));
        assert_eq!(value("binlog_commit_wait_usec"), Some("100"));
        assert_eq!(value("binlog_group_commit_sync_delay"), Some("50"));
        assert_eq!(value("innodb_flush_log_at_trx_commit"), Some("2"));
        assert_eq!(value("nice"), None);
        let none = ["mariadbd", "--no-defaults"].map(str::to_owned);
        assert!(!mysql_settings(&none, None, root).contains_key("sync_binlog"));
    }

    #[test]
    fn tablespaces_have_the_names_that_settings_give() {
        let named = ("innodb_data_file_path", "sys1:12M;/raw/sys2:10M:autoextend");
        let settings = ServerSettings::from([(named.0.to_owned(), named.1.to_owned())]);
        let found = tablespace_roles(&settings);
        assert_eq!(
            found,
            [
                ("/sys1$".to_owned(), Role::System),
                ("/sys2$".to_owned(), Role::System)
            ]
        );
    }
}
