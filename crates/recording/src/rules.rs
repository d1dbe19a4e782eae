//! Roles of an engine's files and classes of its threads, by patterns that come as data: one TOML file an
//! engine.

use regex::Regex;
use serde::Deserialize;

use crate::{Role, ThreadClass};

/// Rules that cannot be used, in one line that names the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RulesError {
    /// What is wrong.
    pub message: String,
    /// What to do about it, in the imperative.
    pub fix: String,
}

/// The rules of one engine.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Name of the engine.
    pub engine: String,
    /// Versions that the rules were tried with; none if nobody has.
    pub tested: Option<String>,
    /// Names of processes by which the engine is known, as the kernel shows them.
    pub programs: Vec<String>,
    /// Whether a server's working directory is its data directory.
    pub works_in_data_directory: bool,
    /// Roles that the names of files do not tell: such files count as data.
    untold: Vec<Role>,
    files: Vec<FileRule>,
    threads: Vec<ThreadRule>,
}

#[derive(Clone, Debug)]
struct FileRule {
    path: Regex,
    role: Role,
}

/// An absent pattern matches everything.
#[derive(Clone, Debug)]
struct ThreadRule {
    process: Option<Regex>,
    command: Option<Regex>,
    thread: Option<Regex>,
    class: ThreadClass,
}

impl Rules {
    /// Reads the text of a rules file; `file` is its name for messages.
    pub fn parse(text: &str, file: &str) -> Result<Self, RulesError> {
        let told: Text = toml::from_str(text).map_err(|error| RulesError {
            message: format!("{file}: {}", one_line(error.message())),
            fix: "see docs/how-to/record.md for what a rules file may say".into(),
        })?;
        let pattern = |text: &str| compile(text, file);
        let optional = |text: &Option<String>| text.as_deref().map(pattern).transpose();
        Ok(Self {
            engine: told.engine,
            tested: told.tested,
            programs: told.programs,
            works_in_data_directory: told.data_directory == Some(DataDirectory::WorkingDirectory),
            untold: told.untold,
            files: (told.file.iter())
                .map(|one| Ok((pattern(&one.path)?, one.role)))
                .map(|made| made.map(|(path, role)| FileRule { path, role }))
                .collect::<Result<_, RulesError>>()?,
            threads: (told.thread.iter())
                .map(|one| {
                    Ok(ThreadRule {
                        process: optional(&one.process)?,
                        command: optional(&one.command)?,
                        thread: optional(&one.thread)?,
                        class: one.class.into(),
                    })
                })
                .collect::<Result<_, RulesError>>()?,
        })
    }

    /// Sentences that every use of a recording by these rules repeats; `names_alone` if the roles of its files come
    /// from nothing else.
    #[must_use]
    pub fn warnings(&self, names_alone: bool) -> Vec<String> {
        let engine = &self.engine;
        let untested = self.tested.is_none().then(|| {
            format!("the rules for {engine} follow documented file names and were not tried with a server")
        });
        let untold = self.untold.iter().filter(|_| names_alone);
        let untold = untold.map(|role| {
            let role = role.name();
            format!("files of role {role} count as data: the names of {engine}'s files do not tell them apart")
        });
        untested.into_iter().chain(untold).collect()
    }

    /// Role of a file, by the first pattern that is found in its path; none if there is no such pattern.
    #[must_use]
    pub fn role_of(&self, path: &str) -> Option<Role> {
        let path = path.strip_suffix(" (deleted)").unwrap_or(path);
        let rule = self.files.iter().find(|rule| rule.path.is_match(path));
        rule.map(|rule| rule.role)
    }

    /// Class of a thread, by the first rule all of whose patterns are found; `Other` if there is no such
    /// rule.
    ///
    /// `process` is the name of its process, `command` the process's command line, as it reads now.
    #[must_use]
    pub fn class_of(&self, process: &str, command: &str, thread: &str) -> ThreadClass {
        let matches = |rule: &&ThreadRule| {
            [
                (&rule.process, process),
                (&rule.command, command),
                (&rule.thread, thread),
            ]
            .iter()
            .all(|(pattern, text)| pattern.as_ref().is_none_or(|one| one.is_match(text)))
        };
        let rule = self.threads.iter().find(matches);
        rule.map_or(ThreadClass::Other, |rule| rule.class)
    }
}

fn compile(pattern: &str, file: &str) -> Result<Regex, RulesError> {
    Regex::new(pattern).map_err(|error| RulesError {
        message: format!(
            "{file}: {pattern:?} is no pattern: {}",
            one_line(&error.to_string())
        ),
        fix: "write a regular expression of the regex crate".into(),
    })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    engine: String,
    tested: Option<String>,
    #[serde(rename = "source")]
    _source: String,
    /// Names of settings that matter to prediction, for a caller that can ask the engine.
    #[serde(default, rename = "settings")]
    _settings: Vec<String>,
    data_directory: Option<DataDirectory>,
    #[serde(default)]
    untold: Vec<Role>,
    /// Protocol by which its counters are read, for a caller with a DSN.
    #[serde(default, rename = "counters")]
    _counters: Option<String>,
    programs: Vec<String>,
    file: Vec<FileText>,
    #[serde(default)]
    thread: Vec<ThreadText>,
}

/// Where the data directory is found.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
enum DataDirectory {
    #[serde(rename = "working directory")]
    WorkingDirectory,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    path: String,
    role: Role,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThreadText {
    process: Option<String>,
    command: Option<String>,
    thread: Option<String>,
    class: ClassText,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ClassText {
    Session,
    Client,
    LogWriter,
    Background,
    Other,
}

impl From<ClassText> for ThreadClass {
    fn from(text: ClassText) -> Self {
        match text {
            ClassText::Session => Self::Session,
            ClassText::Client => Self::Client,
            ClassText::LogWriter => Self::LogWriter,
            ClassText::Background => Self::Background,
            ClassText::Other => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        engine = "toy"
        source = "its manual"
        programs = ["toyd"]
        file = [
            { path = '\.temp$', role = "temp" },
            { path = '^/db/log/', role = "log" },
        ]
        thread = [
            { command = 'writer', class = "log_writer" },
            { process = '^toyd$', thread = '^conn', class = "session" },
        ]
    "#;

    #[test]
    fn the_first_pattern_decides_and_deleted_files_keep_their_role() {
        let rules = Rules::parse(TEXT, "toy.toml").unwrap();
        assert_eq!(rules.role_of("/db/log/1"), Some(Role::Log));
        assert_eq!(rules.role_of("/db/log/1.temp"), Some(Role::Temp));
        assert_eq!(rules.role_of("/db/1.temp (deleted)"), Some(Role::Temp));
        assert_eq!(rules.role_of("/etc/passwd"), None);
    }

    #[test]
    fn a_thread_rule_needs_all_of_its_patterns() {
        let rules = Rules::parse(TEXT, "toy.toml").unwrap();
        assert_eq!(
            rules.class_of("toyd", "toyd: writer", "toyd"),
            ThreadClass::LogWriter
        );
        assert_eq!(
            rules.class_of("toyd", "toyd", "conn-7"),
            ThreadClass::Session
        );
        assert_eq!(rules.class_of("bash", "bash", "conn-7"), ThreadClass::Other);
    }

    #[test]
    fn what_names_do_not_tell_is_a_warning_where_nothing_else_tells_it() {
        let warnings = |text: &str, names_alone| {
            let rules = Rules::parse(text, "toy.toml").unwrap();
            rules.warnings(names_alone).len()
        };
        let tested = TEXT.replace("source", "tested = \"1\"\nuntold = [\"index\"]\nsource");
        assert_eq!((warnings(TEXT, true), warnings(TEXT, false)), (1, 1));
        assert_eq!((warnings(&tested, true), warnings(&tested, false)), (1, 0));
    }

    #[test]
    fn what_is_wrong_is_told_with_the_file() {
        let wrong = |text: &str| Rules::parse(text, "toy.toml").unwrap_err().message;
        assert!(wrong("engine = 1").starts_with("toy.toml: "));
        assert!(wrong(&TEXT.replace("'writer'", "'writ('")).contains("\"writ(\" is no pattern"));
        assert!(wrong(&TEXT.replace("\"log\"", "\"lock\"")).contains("lock"));
        assert!(wrong(&TEXT.replace("programs", "programmes")).contains("programmes"));
    }
}
