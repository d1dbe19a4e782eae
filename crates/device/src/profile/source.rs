//! The `[source]` table: every number of a profile must say where it comes from.

use std::collections::BTreeMap;

use toml::{Table, Value};

use crate::problem::{Problem, SectionResult};

/// Characters of the shortest text that can name a source: one more than "estimated: ".
pub(super) const SHORTEST: usize = 12;

/// Where the numbers under one key come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// A key of the profile, or a table's key that stands for everything in it.
    pub key: String,
    /// Document and page, or "estimated: …" and how.
    pub text: String,
}

/// Reads `[source]` and refuses numbers it does not cover and keys that cover no number.
pub(crate) fn read(root: &Table) -> SectionResult<Vec<Source>> {
    let texts = texts(root)?;
    let mut used: BTreeMap<&str, bool> = texts.keys().map(|key| (key.as_str(), false)).collect();
    for (key, value) in root.iter().filter(|(key, _)| *key != "source") {
        cover(key, value, &mut used)?;
    }
    if let Some((key, _)) = used.iter().find(|(_, used)| !**used) {
        return Err(Problem::new(
            format!("source.{key} covers no number"),
            "remove it or name a key of this profile",
        ));
    }
    Ok(texts
        .into_iter()
        .map(|(key, text)| Source { key, text })
        .collect())
}

fn texts(root: &Table) -> SectionResult<BTreeMap<String, String>> {
    let fix = "give a table of texts, one for each key with numbers";
    let table = root.get("source").and_then(Value::as_table);
    let table = table.ok_or_else(|| Problem::new("missing table source", fix))?;
    let text = |(key, value): (&String, &Value)| match value.as_str() {
        Some(text) if text.chars().count() >= SHORTEST => Ok((key.clone(), text.to_owned())),
        Some(text) => Err(Problem::new(
            format!("source.{key} = \"{text}\" is shorter than {SHORTEST} characters"),
            "name the document and the page, or write \"estimated: \" and how",
        )),
        None => Err(Problem::new(format!("source.{key} is not a text"), fix)),
    };
    table.iter().map(text).collect()
}

/// Walks to every number below `path`, marking the source that covers it.
fn cover(path: &str, value: &Value, used: &mut BTreeMap<&str, bool>) -> SectionResult<()> {
    match value {
        Value::Integer(_) | Value::Float(_) => mark(path, used),
        Value::Table(table) => table
            .iter()
            .try_for_each(|(key, value)| cover(&format!("{path}.{key}"), value, used)),
        Value::Array(list) => list.iter().try_for_each(|value| cover(path, value, used)),
        _ => Ok(()),
    }
}

fn mark(path: &str, used: &mut BTreeMap<&str, bool>) -> SectionResult<()> {
    let mut covering = Some(path);
    while let Some(key) = covering {
        if let Some(used) = used.get_mut(key) {
            *used = true;
            return Ok(());
        }
        covering = key.rsplit_once('.').map(|(parent, _)| parent);
    }
    Err(Problem::new(
        format!("{path} has no source"),
        format!("add \"{path}\" or a table that holds it to [source]"),
    ))
}
