//! Profiles that a profile refers to by name: its base profile (`like`), the members of an array.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::{mebibytes, source};
use crate::problem::{Problem, SectionResult};

/// Texts of profiles by name. The caller reads the files; this crate reads none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Library {
    texts: BTreeMap<String, String>,
    /// Names of the members that are being read, one inside the other.
    inside: Vec<String>,
}

impl Library {
    /// A library of these texts, by name.
    pub fn new(texts: BTreeMap<String, String>) -> Self {
        let inside = Vec::new();
        Self { texts, inside }
    }

    /// The library as a member of that name sees it.
    pub(crate) fn inside(&self, name: &str) -> Self {
        let mut library = self.clone();
        library.inside.push(name.to_owned());
        library
    }

    /// The text of a profile that `key` names.
    pub(crate) fn text(&self, key: &str, name: &str) -> SectionResult<&str> {
        if self.inside.iter().any(|outer| outer == name) {
            return Err(Problem::new(
                format!("{key} = \"{name}\" leads back to itself"),
                "name another profile",
            ));
        }
        self.texts.get(name).map(String::as_str).ok_or_else(|| {
            Problem::new(
                format!("{key} = \"{name}\" is not a known profile"),
                "name a profile that ships, or a TOML file beside this one",
            )
        })
    }
}

/// The table of a profile, on top of the profile that it is `like`, if any.
pub(crate) fn table(text: &str, library: &Library) -> SectionResult<Table> {
    table_within(text, library, &mut Vec::new())
}

fn table_within(text: &str, library: &Library, inside: &mut Vec<String>) -> SectionResult<Table> {
    let mut own: Table = toml::from_str(text).map_err(|error| {
        Problem::new(format!("not TOML: {}", one_line(&error)), "mend the syntax")
    })?;
    mebibytes::convert(&mut own)?;
    let Some(like) = own.remove("like") else {
        return Ok(own);
    };
    let Some(name) = like.as_str().map(str::to_owned) else {
        return Err(Problem::new(
            format!("like is a {}", like.type_str()),
            "give the name of a profile",
        ));
    };
    if inside.contains(&name) {
        return Err(Problem::new(
            format!("like = \"{name}\" leads back to itself"),
            "name another profile",
        ));
    }
    require_own_sources(&mut own)?;
    inside.push(name.clone());
    let mut whole = table_within(library.text("like", &name)?, library, inside)?;
    lay_over(&mut whole, own);
    Ok(whole)
}

/// Refuses numbers whose source would be the other profile's text for its own numbers.
fn require_own_sources(own: &mut Table) -> SectionResult<()> {
    own.entry("source")
        .or_insert_with(|| Value::Table(Table::new()));
    source::read(own).map(drop)
}

/// Replaces values of `base` by those of `over`; tables are merged key by key.
fn lay_over(base: &mut Table, over: Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => lay_over(below, above),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

fn one_line(error: &toml::de::Error) -> String {
    error
        .to_string()
        .split('\n')
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}
