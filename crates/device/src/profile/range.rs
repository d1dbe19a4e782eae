//! The table `range`: how far a number of the profile varies between drives or runs. It is checked here; a
//! prediction spans both ends.

use toml::Table;

use crate::problem::{Problem, SectionResult};
use crate::section::{Section, number_of};

const KEY: &str = "range";

/// Checks the table `range`, if there is one: by key, dots between the names of tables, the least and the greatest
/// value of a number, which lies between them.
pub(crate) fn check(root: &mut Section<'_>, profile: &Table) -> SectionResult<()> {
    let ranges = root.optional(KEY, |root| root.ranges(KEY))?;
    for (key, least, most) in ranges.unwrap_or_default() {
        let number = number(profile, &key).ok_or_else(|| {
            Problem::new(
                format!("{KEY}.\"{key}\" is no number of this profile"),
                "name a key that has one number",
            )
        })?;
        if !(least..=most).contains(&number) {
            return Err(Problem::new(
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
