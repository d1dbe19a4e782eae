//! Roles of an engine's files and classes of its threads, by patterns that come as data: one TOML file an
//! engine.

use regex::Regex;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::{Role, ThreadClass, UserError};

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
    /// Names of settings that matter to prediction.
    pub settings: Vec<String>,
    /// Protocol by which the engine's counters are read, if they are.
    pub counters: Option<String>,
    /// Whether its programs are servers with clients, rather than callers of a library.
    pub is_server: bool,
    files: Vec<FileRule>,
    contents: Vec<ContentRule>,
    threads: Vec<ThreadRule>,
}

#[derive(Clone, Debug)]
struct FileRule {
    path: Regex,
    role: Role,
}

#[derive(Clone, Debug)]
struct ContentRule {
    offset: usize,
    bytes: Vec<u8>,
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
    pub fn parse(text: &str, file: &str) -> Result<Self, UserError> {
        let file_rules: Text = toml::from_str(text).map_err(|error| UserError {
            message: format!("{file}: {}", one_line(error.message())),
            fix: "see docs/how-to/record.md for what a rules file may say".into(),
        })?;
        let pattern = |text: &str| compile(text, file);
        let optional = |text: &Option<String>| text.as_deref().map(pattern).transpose();
        Ok(Self {
            engine: file_rules.engine,
            tested: file_rules.tested,
            programs: file_rules.programs,
            works_in_data_directory: file_rules.data_directory
                == Some(DataDirectory::WorkingDirectory),
            untold: file_rules.untold,
            settings: file_rules.settings,
            counters: file_rules.counters,
            is_server: !file_rules.embedded,
            contents: (file_rules.content.iter())
                .map(|content| {
                    Ok(ContentRule {
                        offset: content.offset.into(),
                        bytes: bytes_of_hex(&content.hex, file)?,
                        role: content.role,
                    })
                })
                .collect::<Result<_, UserError>>()?,
            files: (file_rules.file.iter())
                .map(|file| Ok((pattern(&file.path)?, file.role)))
                .map(|made| made.map(|(path, role)| FileRule { path, role }))
                .collect::<Result<_, UserError>>()?,
            threads: (file_rules.thread.iter())
                .map(|thread| {
                    Ok(ThreadRule {
                        process: optional(&thread.process)?,
                        command: optional(&thread.command)?,
                        thread: optional(&thread.thread)?,
                        class: thread.class.into(),
                    })
                })
                .collect::<Result<_, UserError>>()?,
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
        let by_other_means = self.untold.iter().filter(|_| names_alone);
        let by_other_means = by_other_means.map(|role| {
            let role = role.name();
            format!("files of role {role} count as data: the names of {engine}'s files do not tell them apart")
        });
        untested.into_iter().chain(by_other_means).collect()
    }

    /// Role of a file, by the first pattern that is found in its path; none if there is no such pattern.
    #[must_use]
    pub fn role_of(&self, path: &str) -> Option<Role> {
        let path = path.strip_suffix(" (deleted)").unwrap_or(path);
        let rule = self.files.iter().find(|rule| rule.path.is_match(path));
        rule.map(|rule| rule.role)
    }

    /// The same rules with others before them: pattern of a path, role. `what` names their origin in messages.
    pub fn after(mut self, first: &[(String, Role)], what: &str) -> Result<Self, UserError> {
        let made = first.iter().map(|(path, role)| {
            let path = compile(path, what)?;
            Ok(FileRule { path, role: *role })
        });
        let made: Vec<FileRule> = made.collect::<Result<_, UserError>>()?;
        self.files.splice(0..0, made);
        Ok(self)
    }

    /// Bytes of a file's beginning by which [`Self::role_of_content`] knows files; 0 if it knows none.
    #[must_use]
    pub fn content_bytes(&self) -> usize {
        let ends = self
            .contents
            .iter()
            .map(|rule| rule.offset + rule.bytes.len());
        ends.max().unwrap_or(0)
    }

    /// Role of a file whose name says nothing, by the bytes with which it begins.
    #[must_use]
    pub fn role_of_content(&self, beginning: &[u8]) -> Option<Role> {
        let begins = |rule: &&ContentRule| {
            let rest = beginning.get(rule.offset..);
            rest.is_some_and(|rest| rest.starts_with(&rule.bytes))
        };
        self.contents.iter().find(begins).map(|rule| rule.role)
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
            .all(|(pattern, text)| {
                pattern
                    .as_ref()
                    .is_none_or(|pattern| pattern.is_match(text))
            })
        };
        let rule = self.threads.iter().find(matches);
        rule.map_or(ThreadClass::Other, |rule| rule.class)
    }
}

fn compile(pattern: &str, file: &str) -> Result<Regex, UserError> {
    Regex::new(pattern).map_err(|error| UserError {
        message: format!(
            "{file}: {pattern:?} is no pattern: {}",
            one_line(&error.to_string())
        ),
        fix: "write a regular expression of the regex crate".into(),
    })
}

/// Bytes from pairs of hexadecimal digits.
fn bytes_of_hex(hex: &str, file: &str) -> Result<Vec<u8>, UserError> {
    let pairs = (0..hex.len()).step_by(2);
    let bytes = pairs.map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok());
    let bytes = bytes
        .collect::<Option<Vec<u8>>>()
        .filter(|bytes| !bytes.is_empty());
    bytes.ok_or_else(|| UserError {
        message: format!("{file}: {hex:?} is no pairs of hexadecimal digits"),
        fix: "write the first bytes of the file such as \"53514c\"".into(),
    })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

// The text of a rules file.

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Text {
    pub engine: String,
    pub tested: Option<String>,
    #[serde(rename = "source")]
    _source: String,
    #[serde(default)]
    pub settings: Vec<String>,
    pub data_directory: Option<DataDirectory>,
    #[serde(default)]
    pub untold: Vec<Role>,
    /// Protocol by which its counters are read, for a caller with a DSN.
    pub counters: Option<String>,
    /// Whether the engine is a library: its programs hold databases themselves.
    #[serde(default)]
    pub embedded: bool,
    pub programs: Vec<String>,
    pub file: Vec<FileRuleText>,
    #[serde(default)]
    pub content: Vec<ContentRuleText>,
    #[serde(default)]
    pub thread: Vec<ThreadRuleText>,
}

/// Where the data directory is found.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum DataDirectory {
    #[serde(rename = "working directory")]
    WorkingDirectory,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileRuleText {
    pub path: String,
    #[serde(deserialize_with = "role_of_files")]
    pub role: Role,
}

/// Bytes by which a file is known whatever its name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ContentRuleText {
    pub offset: u16,
    pub hex: String,
    #[serde(deserialize_with = "role_of_files")]
    pub role: Role,
}

fn role_of_files<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Role, D::Error> {
    let name = String::deserialize(deserializer)?;
    Role::of_files(&name).ok_or_else(|| D::Error::custom(format!("{name:?} is no role of a file")))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ThreadRuleText {
    pub process: Option<String>,
    pub command: Option<String>,
    pub thread: Option<String>,
    pub class: ThreadClassText,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ThreadClassText {
    Session,
    Client,
    LogWriter,
    Background,
    Other,
}

impl From<ThreadClassText> for ThreadClass {
    fn from(text: ThreadClassText) -> Self {
        match text {
            ThreadClassText::Session => Self::Session,
            ThreadClassText::Client => Self::Client,
            ThreadClassText::LogWriter => Self::LogWriter,
            ThreadClassText::Background => Self::Background,
            ThreadClassText::Other => Self::Other,
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
    fn a_file_is_known_by_its_first_bytes_and_by_rules_put_first() {
        let content = r#"content = [{ offset = 2, hex = "4142", role = "data" }]"#;
        let rules = Rules::parse(&format!("{TEXT}{content}"), "toy.toml").unwrap();
        assert_eq!(rules.content_bytes(), 4);
        assert_eq!(rules.role_of_content(b"xxABcd"), Some(Role::Data));
        assert_eq!(rules.role_of_content(b"AB"), None);
        assert_eq!(rules.role_of_content(b""), None);
        let own = [("^/db/log/1$".to_owned(), Role::Archive)];
        let rules = rules.after(&own, "--role").unwrap();
        assert_eq!(rules.role_of("/db/log/1"), Some(Role::Archive));
        assert_eq!(rules.role_of("/db/log/2"), Some(Role::Log));
        let odd = format!("{TEXT}{}", content.replace("4142", "414"));
        let wrong = Rules::parse(&odd, "toy.toml").unwrap_err().message;
        assert!(wrong.contains("\"414\" is no pairs"), "{wrong}");
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
