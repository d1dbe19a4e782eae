//! Rates in MiB per second: providers of volumes give them so. They are read as 10⁶ bytes per second.

use toml::{Table, Value};

use crate::problem::{Problem, SectionResult};

const MB_PER_MIB: f64 = 1.048_576;
/// Tables with a rate that may be given in either unit.
const TABLES: [&str; 2] = ["limits", "credits"];

/// Replaces each `mib_per_s` by the `mb_per_s` of the same rate, with its sources.
pub(super) fn convert(profile: &mut Table) -> SectionResult<()> {
    for name in TABLES {
        let Some(Value::Table(table)) = profile.get_mut(name) else {
            continue;
        };
        let Some(mut rate) = table.remove("mib_per_s") else {
            continue;
        };
        if table.contains_key("mb_per_s") {
            return Err(Problem::new(
                format!("{name} has mb_per_s and mib_per_s"),
                "give the rate in one unit",
            ));
        }
        if let Value::Table(parts) = &mut rate {
            for value in parts.iter_mut().map(|(_, value)| value) {
                scale(value);
            }
        }
        table.insert("mb_per_s".to_owned(), rate);
        rename_sources(profile, name);
    }
    Ok(())
}

fn scale(value: &mut Value) {
    match value {
        Value::Integer(number) => *value = Value::Float(*number as f64 * MB_PER_MIB),
        Value::Float(number) => *number *= MB_PER_MIB,
        _ => {}
    }
}

fn rename_sources(profile: &mut Table, table: &str) {
    let Some(Value::Table(sources)) = profile.get_mut("source") else {
        return;
    };
    let (from, to) = (format!("{table}.mib_per_s"), format!("{table}.mb_per_s"));
    let keys: Vec<String> = sources
        .keys()
        .filter(|key| **key == from || key.starts_with(&format!("{from}.")))
        .cloned()
        .collect();
    for key in keys {
        if let Some(text) = sources.remove(&key) {
            sources.insert(key.replacen(&from, &to, 1), text);
        }
    }
}
