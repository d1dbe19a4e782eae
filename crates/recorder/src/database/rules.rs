//! Rules for the roles of files: the ones that tierwise ships, and a user's own.

use std::io;
use std::path::Path;
use std::sync::OnceLock;

use tierwise_input::Links;
use tierwise_recording::{Role, Rules};

use crate::UserError;

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../../python/tierwise/data/rules/", $name, ".toml")))),*]
    };
}

/// Longest file of rules.
const MOST_BYTES: u64 = 16 << 20;

/// Text by engine: the files that `tierwise record` reads.
const SHIPPED: [(&str, &str); 9] = shipped![
    "ase",
    "duckdb",
    "mariadb",
    "oracle",
    "postgres",
    "rocksdb",
    "sqlite",
    "sqlserver",
    "versant",
];

/// An engine that has the programs and the rules of another one.
pub const ALIAS: (&str, &str) = ("mysql", "mariadb");

/// Engines with shipped rules, separated by commas.
pub fn shipped_engine_names() -> String {
    let mut names = SHIPPED.map(|(name, _)| name).to_vec();
    names.push(ALIAS.0);
    names.sort_unstable();
    names.join(", ")
}

/// The rules of an engine by its name, or from a user's TOML file.
pub fn load_engine_rules(name: &str) -> Result<Rules, UserError> {
    if name.ends_with(".toml") {
        let file = Path::new(name);
        let read = tierwise_input::read(file, Links::Follow, MOST_BYTES);
        let text = read.and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other));
        let text =
            text.map_err(|error| UserError::at(file, error, "name a readable file of rules"))?;
        return Rules::parse(&text, name);
    }
    let shipped = if name == ALIAS.0 { ALIAS.1 } else { name };
    let Some((_, text)) = SHIPPED.iter().find(|(known, _)| *known == shipped) else {
        return Err(UserError::new(
            format!("there are no rules for engine {name:?}"),
            format!("use one of {}, or a TOML file", shipped_engine_names()),
        ));
    };
    Rules::parse(text, name)
}

/// The rules of all engines, parsed once.
pub fn all_engine_rules() -> impl Iterator<Item = &'static Rules> {
    static PARSED: OnceLock<Vec<Rules>> = OnceLock::new();
    let parsed = || SHIPPED.map(|(name, text)| Rules::parse(text, name).ok());
    let parsed = PARSED.get_or_init(|| parsed().into_iter().flatten().collect());
    parsed.iter()
}

/// The rules of the engine whose processes have that name, if any.
pub fn rules_of_program(program: &str) -> Option<&'static Rules> {
    all_engine_rules().find(|rules| rules.programs.iter().any(|known| known == program))
}

/// A role given as `PATH=ROLE`, as a pattern of paths and the role. The path may be a directory; `*` stands for any
/// letters but `/`.
///
/// # Errors
/// If it is no absolute path, or no role.
pub fn parse_role_by_path(text: &str) -> Result<(String, Role), UserError> {
    let wrong = |message: String| {
        let known: Vec<&str> = Role::all_of_files().map(Role::name).collect();
        let known = known.join(", ");
        let fix = format!("write for example --role /srv/log/b.*=archive; roles are {known}");
        UserError::new(message, fix)
    };
    let Some((path, name)) = text.rsplit_once('=') else {
        return Err(wrong(format!("--role: {text:?} has no role")));
    };
    if !path.starts_with('/') {
        return Err(wrong(format!("--role: {path:?} is no absolute path")));
    }
    let Some(role) = Role::of_files(name) else {
        return Err(wrong(format!("--role: {name:?} is no role")));
    };
    let parts = path.trim_end_matches('/').split('*');
    let parts: Vec<String> = parts
        .map(|part| escaped_for_regex(Path::new(part)))
        .collect();
    Ok((format!("^{}(/.*)?$", parts.join("[^/]*")), role))
}

/// Escapes what a regular expression would read as a sign.
pub fn escaped_for_regex(path: &Path) -> String {
    let text = path.to_string_lossy();
    let sign = |letter: char| !letter.is_alphanumeric() && !"/_".contains(letter);
    let parts = text.chars().map(|letter| match sign(letter) {
        true => format!("\\{letter}"),
        false => letter.to_string(),
    });
    parts.collect()
}

/// Whether a name is one of those that spaces separate.
pub fn is_listed_name(names: &str, name: &str) -> bool {
    names.split(' ').any(|known| known == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_file_is_in_the_program_and_can_be_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tierwise/data/rules");
        let files = std::fs::read_dir(folder).unwrap().flatten();
        let mut found: Vec<_> = files
            .map(|file| file.path().file_stem().unwrap().to_owned())
            .collect();
        found.sort();
        assert_eq!(found, SHIPPED.map(|(name, _)| name));
        assert_eq!(all_engine_rules().count(), SHIPPED.len());
    }

    #[test]
    fn a_role_is_given_by_path() {
        let given = ["/srv/l/b.*=archive", "/srv/fast/=log"];
        let given: Vec<_> = given.map(|text| parse_role_by_path(text).unwrap()).into();
        let rules = load_engine_rules("mariadb")
            .unwrap()
            .after(&given, "--role")
            .unwrap();
        assert_eq!(rules.role_of("/srv/l/b.x1"), Some(Role::Archive));
        assert_eq!(rules.role_of("/srv/l/bax"), None);
        assert_eq!(rules.role_of("/srv/fast/deep/t.ibd"), Some(Role::Log));
        assert_eq!(rules.role_of("/srv/faster/t.ibd"), Some(Role::Data));
        for wrong in ["/srv/l", "l=log", "/l=logs"] {
            let refused = parse_role_by_path(wrong).unwrap_err();
            assert!(refused.message.starts_with("--role"));
        }
    }

    #[test]
    fn an_engine_is_known_by_its_program() {
        assert_eq!(rules_of_program("postmaster").unwrap().engine, "postgres");
        assert!(rules_of_program("bash").is_none());
        assert!(
            load_engine_rules("postgers")
                .unwrap_err()
                .fix
                .contains("postgres")
        );
    }

    #[test]
    fn signs_of_patterns_are_escaped() {
        assert_eq!(escaped_for_regex(Path::new("/a.b/c-1+")), "/a\\.b/c\\-1\\+");
    }
}
