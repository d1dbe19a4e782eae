//! Rules for the roles of files: the ones that tierwise ships, and a user's own.

use std::io;
use std::path::Path;

use tierwise_input::Links;
use tierwise_recording::Rules;

use crate::RecordError;

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../python/tierwise/data/rules/", $name, ".toml")))),*]
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

/// Engines with shipped rules, separated by commas.
pub fn names() -> String {
    SHIPPED.map(|(name, _)| name).join(", ")
}

/// The rules of an engine by its name, or from a user's TOML file.
pub fn load(name: &str) -> Result<Rules, RecordError> {
    if name.ends_with(".toml") {
        let file = Path::new(name);
        let read = tierwise_input::read(file, Links::Follow, MOST_BYTES);
        let text = read.and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other));
        let text =
            text.map_err(|error| RecordError::at(file, error, "name a readable file of rules"))?;
        return Ok(Rules::parse(&text, name)?);
    }
    let Some((_, text)) = SHIPPED.iter().find(|(known, _)| *known == name) else {
        return Err(RecordError::new(
            format!("there are no rules for engine {name:?}"),
            format!("use one of {}, or a TOML file", names()),
        ));
    };
    Ok(Rules::parse(text, name)?)
}

/// The rules of all engines.
pub fn all() -> impl Iterator<Item = Rules> {
    SHIPPED
        .iter()
        .filter_map(|(name, text)| Rules::parse(text, name).ok())
}

/// The rules of the engine whose processes have that name, if any.
pub fn of_program(program: &str) -> Option<Rules> {
    all().find(|rules| rules.programs.iter().any(|known| known == program))
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
        assert_eq!(all().count(), SHIPPED.len());
    }

    #[test]
    fn an_engine_is_known_by_its_program() {
        assert_eq!(of_program("postmaster").unwrap().engine, "postgres");
        assert!(of_program("bash").is_none());
        assert!(load("postgers").unwrap_err().fix.contains("postgres"));
    }
}
