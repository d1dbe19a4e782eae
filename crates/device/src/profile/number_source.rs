//! The `[source]` table: every number of a profile must say where it comes from.

use std::collections::BTreeMap;

use toml::{Table, Value};

use crate::params_error::{ParamsError, SectionResult};
use crate::profile_section::{ProfileSection, number_of};

/// Characters of the shortest text that can name a source: one more than "estimated: ".
pub(super) const SHORTEST: usize = 12;

/// Where the numbers under one key come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberSource {
    /// A key of the profile, or a table's key that stands for everything in it.
    pub key: String,
    /// Document and page, or "estimated: …" and how.
    pub text: String,
}

/// Reads `[source]` and refuses numbers it does not cover and keys that cover no number.
pub(crate) fn read_sources(root: &Table) -> SectionResult<Vec<NumberSource>> {
    let texts = source_texts(root)?;
    let mut used: BTreeMap<&str, bool> = texts.keys().map(|key| (key.as_str(), false)).collect();
    for (key, value) in root.iter().filter(|(key, _)| *key != "source") {
        mark_covered(key, value, &mut used)?;
    }
    if let Some((key, _)) = used.iter().find(|(_, used)| !**used) {
        return Err(ParamsError::new(
            format!("source.{key} covers no number"),
            "remove it or name a key of this profile",
        ));
    }
    Ok(texts
        .into_iter()
        .map(|(key, text)| NumberSource { key, text })
        .collect())
}

fn source_texts(root: &Table) -> SectionResult<BTreeMap<String, String>> {
    let fix = "give a table of texts, one for each key with numbers";
    let table = root.get("source").and_then(Value::as_table);
    let table = table.ok_or_else(|| ParamsError::new("missing table source", fix))?;
    let text = |(key, value): (&String, &Value)| match value.as_str() {
        Some(text) if text.chars().count() >= SHORTEST => Ok((key.clone(), text.to_owned())),
        Some(text) => Err(ParamsError::new(
            format!("source.{key} = \"{text}\" is shorter than {SHORTEST} characters"),
            "name the document and the page, or write \"estimated: \" and how",
        )),
        None => Err(ParamsError::new(format!("source.{key} is not a text"), fix)),
    };
    table.iter().map(text).collect()
}

/// Walks to every number below `path`, marking the source that covers it.
fn mark_covered(path: &str, value: &Value, used: &mut BTreeMap<&str, bool>) -> SectionResult<()> {
    match value {
        Value::Integer(_) | Value::Float(_) => mark_number(path, used),
        Value::Table(table) => table
            .iter()
            .try_for_each(|(key, value)| mark_covered(&format!("{path}.{key}"), value, used)),
        Value::Array(list) => list
            .iter()
            .try_for_each(|value| mark_covered(path, value, used)),
        _ => Ok(()),
    }
}

fn mark_number(path: &str, used: &mut BTreeMap<&str, bool>) -> SectionResult<()> {
    let mut covering = Some(path);
    while let Some(key) = covering {
        if let Some(used) = used.get_mut(key) {
            *used = true;
            return Ok(());
        }
        covering = key.rsplit_once('.').map(|(parent, _)| parent);
    }
    Err(ParamsError::new(
        format!("{path} has no source"),
        format!("add \"{path}\" or a table that holds it to [source]"),
    ))
}

// Rates in MiB per second: providers of volumes give them so. They are read as 10⁶ bytes per second.

const MB_PER_MIB: f64 = 1.048_576;
/// Tables with a rate that may be given in either unit.
const TABLES: [&str; 2] = ["limits", "credits"];

/// Replaces each `mib_per_s` by the `mb_per_s` of the same rate, with its sources and ranges.
pub(super) fn convert_rates(profile: &mut Table) -> SectionResult<()> {
    for name in TABLES {
        convert_rate_ranges(profile, name)?;
        let Some(Value::Table(table)) = profile.get_mut(name) else {
            continue;
        };
        let Some(mut rate) = table.remove("mib_per_s") else {
            continue;
        };
        if table.contains_key("mb_per_s") {
            return Err(ParamsError::new(
                format!("{name} has mb_per_s and mib_per_s"),
                "give the rate in one unit",
            ));
        }
        if let Value::Table(parts) = &mut rate {
            for value in parts.iter_mut().map(|(_, value)| value) {
                scale_number(value);
            }
        }
        table.insert("mb_per_s".to_owned(), rate);
        rename_sources(profile, name);
    }
    Ok(())
}

/// A range may be of a number that another file gives, which this one is like.
fn convert_rate_ranges(profile: &mut Table, table: &str) -> SectionResult<()> {
    let (from, to) = (format!("{table}.mib_per_s."), format!("{table}.mb_per_s."));
    let Some(Value::Table(ranges)) = profile.get_mut(KEY) else {
        return Ok(());
    };
    for key in keys_under(ranges, &from) {
        let Some(mut range) = ranges.remove(&key) else {
            continue;
        };
        scale_number(&mut range);
        let converted = key.replacen(&from, &to, 1);
        if ranges.insert(converted.clone(), range).is_some() {
            return Err(ParamsError::new(
                format!("{KEY} has \"{converted}\" and \"{key}\""),
                "give the range in one unit",
            ));
        }
    }
    rename_sources(profile, &format!("{KEY}.{table}"));
    Ok(())
}

fn scale_number(value: &mut Value) {
    match value {
        Value::Array(ends) => ends.iter_mut().for_each(scale_number),
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
    let mut keys = keys_under(sources, &format!("{from}."));
    keys.extend(sources.contains_key(&from).then(|| from.clone()));
    for key in keys {
        if let Some(text) = sources.remove(&key) {
            sources.insert(key.replacen(&from, &to, 1), text);
        }
    }
}

fn keys_under(table: &Table, prefix: &str) -> Vec<String> {
    let under = table.keys().filter(|key| key.starts_with(prefix));
    under.cloned().collect()
}

// The table `range`: how far a number of the profile varies between drives or runs. It is checked here; a
// prediction spans both ends.

const KEY: &str = "range";

/// Checks the table `range`, if there is one: by key, dots between the names of tables, the least and the greatest
/// value of a number, which lies between them.
pub(crate) fn check_ranges(root: &mut ProfileSection<'_>, profile: &Table) -> SectionResult<()> {
    let ranges = root.optional(KEY, |root| root.ranges(KEY))?;
    for (key, least, most) in ranges.unwrap_or_default() {
        let number = number(profile, &key).ok_or_else(|| {
            ParamsError::new(
                format!("{KEY}.\"{key}\" is no number of this profile"),
                "name a key that has one number",
            )
        })?;
        if !(least..=most).contains(&number) {
            return Err(ParamsError::new(
                format!("{key} = {number} is outside of its range, {least} to {most}"),
                "give the least and the greatest value around it",
            ));
        }
    }
    Ok(())
}

fn number(profile: &Table, key: &str) -> Option<f64> {
    let (tables, last) = key.rsplit_once('.').unwrap_or(("", key));
    let mut table = profile;
    for name in tables.split('.').filter(|name| !name.is_empty()) {
        table = table.get(name)?.as_table()?;
    }
    number_of(table.get(last)?)
}

// The table `price` of a user's own profile. It is checked here; who bills reads it from the profile's fields.

const MOST_USD: f64 = 1e9;
const MOST_INCLUDED: f64 = 1e9;
const STEPS: &str = "usd_per_iops_month_above";

/// Checks the table `price`, if there is one: US dollars to buy the whole device, or to rent 10^9 bytes, an
/// I/O per second and 10^6 bytes per second for a month.
pub(crate) fn check_price(root: &mut ProfileSection<'_>) -> SectionResult<()> {
    if !root.has("price") {
        return Ok(());
    }
    let mut section = root.section("price")?;
    for (key, most) in [
        ("usd", MOST_USD),
        ("usd_per_gb_month", MOST_USD),
        ("usd_per_iops_month", MOST_USD),
        ("usd_per_mb_per_s_month", MOST_USD),
        ("included_iops", MOST_INCLUDED),
        ("included_mb_per_s", MOST_INCLUDED),
    ] {
        section.optional(key, |price| price.number(key, 0.0..=most))?;
    }
    check_price_steps(&mut section)?;
    section.finish()
}

/// Steps of the price of an I/O: a number of them, ascending, and the price of each one above it.
fn check_price_steps(section: &mut ProfileSection<'_>) -> SectionResult<()> {
    let steps = section.optional(STEPS, |price| {
        price.pairs(STEPS, 0.0..=MOST_INCLUDED, 0.0..=MOST_USD)
    })?;
    let steps = steps.unwrap_or_default();
    if steps.windows(2).any(|pair| pair[1].0 <= pair[0].0) {
        return Err(ParamsError::new(
            format!("{} is not ascending", section.name(STEPS)),
            "give pairs in ascending order of I/Os per second",
        ));
    }
    Ok(())
}
