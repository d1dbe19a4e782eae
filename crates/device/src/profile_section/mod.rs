//! Typed, range-checked reading of one TOML table.

mod profile_keys;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use profile_keys::WholeNumber;
use toml::{Table, Value};

use crate::params_error::{
    CAPACITY_BYTES, LINK_MB_PER_S, ParamsError, SLOWEST_MB_PER_S, SectionResult,
    out_of_range_error, require_in_range,
};
use crate::{Nanos, SECTOR_BYTES};

pub(crate) use profile_keys::ProfileKeys;
pub use profile_keys::{ProfileKey, ValueForm};

/// One table of a profile. Remembers which keys were read, so that unknown ones can be refused.
pub(crate) struct ProfileSection<'a> {
    path: String,
    table: &'a Table,
    asked: BTreeSet<&'static str>,
    keys: ProfileKeys,
}

impl<'a> ProfileSection<'a> {
    /// A whole profile, whose keys are noted in `keys`.
    pub(crate) fn new(table: &'a Table, keys: &ProfileKeys) -> Self {
        Self::inside(String::new(), table, keys)
    }

    fn inside(path: String, table: &'a Table, keys: &ProfileKeys) -> Self {
        Self {
            path,
            table,
            asked: BTreeSet::new(),
            keys: keys.clone(),
        }
    }

    /// A number in `range`.
    pub(crate) fn number(
        &mut self,
        key: &'static str,
        range: RangeInclusive<f64>,
    ) -> SectionResult<f64> {
        self.note(key, profile_keys::number_form(&range));
        let value = self.value(key)?;
        let number = number_of(value).ok_or_else(|| self.wrong_type(key, "a number", value))?;
        self.require(key, number, range).map(|()| number)
    }

    /// As [`ProfileSection::number`], with a value for an absent key.
    pub(crate) fn number_or(
        &mut self,
        key: &'static str,
        default: f64,
        range: RangeInclusive<f64>,
    ) -> SectionResult<f64> {
        let found = self.optional(key, |section| section.number(key, range))?;
        Ok(found.unwrap_or(default))
    }

    /// A whole number in `range`.
    pub(crate) fn integer<T: WholeNumber>(
        &mut self,
        key: &'static str,
        range: RangeInclusive<T>,
    ) -> SectionResult<T> {
        self.note(key, profile_keys::integer_form(&range));
        let value = self.value(key)?;
        let Value::Integer(number) = value else {
            return Err(self.wrong_type(key, "a whole number", value));
        };
        match T::try_from(*number) {
            Ok(number) if range.contains(&number) => Ok(number),
            _ => Err(out_of_range_error(&self.name(key), value, &range)),
        }
    }

    /// As [`ProfileSection::integer`], with a value for an absent key.
    pub(crate) fn integer_or<T: WholeNumber>(
        &mut self,
        key: &'static str,
        default: T,
        range: RangeInclusive<T>,
    ) -> SectionResult<T> {
        let found = self.optional(key, |section| section.integer(key, range))?;
        Ok(found.unwrap_or(default))
    }

    /// One of true and false.
    pub(crate) fn flag(&mut self, key: &'static str) -> SectionResult<bool> {
        self.note(key, ValueForm::Flag);
        match self.value(key)? {
            Value::Boolean(flag) => Ok(*flag),
            other => Err(self.wrong_type(key, "true or false", other)),
        }
    }

    /// As [`ProfileSection::flag`], with a value for an absent key.
    pub(crate) fn flag_or(&mut self, key: &'static str, default: bool) -> SectionResult<bool> {
        let found = self.optional(key, |section| section.flag(key))?;
        Ok(found.unwrap_or(default))
    }

    pub(crate) fn text(&mut self, key: &'static str) -> SectionResult<&'a str> {
        self.note(key, ValueForm::Text);
        match self.value(key)? {
            Value::String(text) => Ok(text),
            other => Err(self.wrong_type(key, "a text", other)),
        }
    }

    /// One of a few words.
    pub(crate) fn word(&mut self, key: &'static str, allowed: &[&str]) -> SectionResult<&'a str> {
        let words = allowed.iter().copied().map(str::to_owned).collect();
        self.note(key, ValueForm::Word { words });
        let value = self.value(key)?;
        let Value::String(text) = value else {
            return Err(self.wrong_type(key, "a text", value));
        };
        if allowed.contains(&text.as_str()) {
            return Ok(text);
        }
        let name = self.name(key);
        Err(ParamsError::new(
            format!("{name} = \"{text}\" is not known"),
            format!("use one of: {}", allowed.join(", ")),
        ))
    }

    /// Refuses a value outside a range that depends on other keys.
    pub(crate) fn require(
        &self,
        key: &str,
        value: f64,
        range: RangeInclusive<f64>,
    ) -> SectionResult<()> {
        require_in_range(&self.name(key), value, range)
    }

    /// A table inside this one.
    pub(crate) fn section(&mut self, key: &'static str) -> SectionResult<ProfileSection<'a>> {
        self.note(key, ValueForm::Table);
        match self.value(key)? {
            Value::Table(table) => Ok(ProfileSection::inside(self.name(key), table, &self.keys)),
            other => Err(self.wrong_type(key, "a table", other)),
        }
    }

    /// A list of tables, at least one.
    pub(crate) fn sections(&mut self, key: &'static str) -> SectionResult<Vec<ProfileSection<'a>>> {
        self.note(key, ValueForm::Tables);
        let value = self.value(key)?;
        let tables = value
            .as_array()
            .and_then(|list| list.iter().map(Value::as_table).collect::<Option<Vec<_>>>());
        match tables {
            Some(tables) if !tables.is_empty() => Ok((0..)
                .zip(tables)
                .map(|(index, table): (usize, _)| {
                    ProfileSection::inside(
                        format!("{}[{index}]", self.name(key)),
                        table,
                        &self.keys,
                    )
                })
                .collect()),
            _ => Err(self.wrong_type(key, "a list of one or more tables", value)),
        }
    }

    /// Reads past a table of texts under free keys, each of a least number of characters.
    pub(crate) fn texts(&mut self, key: &'static str, shortest: usize) -> SectionResult<()> {
        self.section(key)?;
        self.note(key, ValueForm::Texts { shortest });
        Ok(())
    }

    /// What `read` reads of a key that may be absent.
    pub(crate) fn optional<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut ProfileSection<'_>) -> SectionResult<T>,
    ) -> SectionResult<Option<T>> {
        let has = self.has(key);
        self.when(has, key, |section| read(section).map(Some))
    }

    /// What `read` reads of a key that is there only if `wanted`; else what the key holds is noted all the same.
    pub(crate) fn when<T: Default>(
        &mut self,
        wanted: bool,
        key: &'static str,
        read: impl FnOnce(&mut ProfileSection<'_>) -> SectionResult<T>,
    ) -> SectionResult<T> {
        self.keys.note_optional(&self.name(key));
        if wanted {
            return read(self);
        }
        let empty = Table::new();
        // Notes the key, then misses it.
        read(&mut ProfileSection::inside(
            self.path.clone(),
            &empty,
            &self.keys,
        ))
        .ok();
        Ok(T::default())
    }

    /// Whether an optional key is there.
    pub(crate) fn has(&mut self, key: &'static str) -> bool {
        self.asked.insert(key);
        self.keys.note_optional(&self.name(key));
        self.table.contains_key(key)
    }

    /// Full name of a key, as error messages give it.
    pub(crate) fn name(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// Refuses keys that were not read. Call after all known keys were read.
    pub(crate) fn finish(self) -> SectionResult<()> {
        match self
            .table
            .keys()
            .find(|key| !self.asked.contains(key.as_str()))
        {
            None => Ok(()),
            Some(key) => {
                let known: Vec<&str> = self.asked.iter().copied().collect();
                Err(ParamsError::new(
                    format!("unknown key {}", self.name(key)),
                    format!("remove it or use one of: {}", known.join(", ")),
                ))
            }
        }
    }

    fn value(&mut self, key: &'static str) -> SectionResult<&'a Value> {
        self.asked.insert(key);
        self.table.get(key).ok_or_else(|| {
            let name = self.name(key);
            ParamsError::new(format!("missing key {name}"), format!("add {name}"))
        })
    }

    fn note(&self, key: &str, form: ValueForm) {
        self.keys.note(&self.name(key), form);
    }

    fn wrong_type(&self, key: &str, wanted: &str, value: &Value) -> ParamsError {
        ParamsError::new(
            format!("{} is a {}", self.name(key), value.type_str()),
            format!("give {wanted}"),
        )
    }
}

// Lists of numbers in a TOML table.

impl ProfileSection<'_> {
    /// One number in `range`, or a list of up to `most` of them.
    pub(crate) fn numbers(
        &mut self,
        key: &'static str,
        most: usize,
        range: RangeInclusive<f64>,
    ) -> SectionResult<Vec<f64>> {
        self.note(
            key,
            ValueForm::Numbers {
                least: *range.start(),
                most: *range.end(),
                longest: most,
            },
        );
        let value = self.value(key)?;
        let Value::Array(list) = value else {
            let number = number_of(value)
                .ok_or_else(|| self.wrong_type(key, "a number or a list of numbers", value))?;
            return self.require(key, number, range).map(|()| vec![number]);
        };
        match list.iter().map(number_of).collect::<Option<Vec<f64>>>() {
            Some(all) if all.is_empty() || all.len() > most => {
                Err(self.wrong_type(key, &format!("1 to {most} numbers"), value))
            }
            Some(all) if all.iter().all(|number| range.contains(number)) => Ok(all),
            Some(_) => Err(out_of_range_error(&self.name(key), value, &range)),
            None => Err(self.wrong_type(key, "a number or a list of numbers", value)),
        }
    }

    /// A list of pairs of numbers, each in its range.
    pub(crate) fn pairs(
        &mut self,
        key: &'static str,
        first: RangeInclusive<f64>,
        second: RangeInclusive<f64>,
    ) -> SectionResult<Vec<(f64, f64)>> {
        self.note(
            key,
            ValueForm::Pairs {
                least: [*first.start(), *second.start()],
                most: [*first.end(), *second.end()],
            },
        );
        let value = self.value(key)?;
        let rows = value
            .as_array()
            .ok_or_else(|| self.wrong_type(key, "a list of pairs of numbers", value))?;
        rows.iter()
            .map(|row| self.pair(key, row, &first, &second))
            .collect()
    }

    /// A table of the least and the greatest number of other keys.
    pub(crate) fn ranges(&mut self, key: &'static str) -> SectionResult<Vec<(String, f64, f64)>> {
        let table = self.section(key)?.table;
        self.note(key, ValueForm::Ranges);
        table
            .iter()
            .map(|(name, value)| {
                let pair = value.as_array().map_or(&[][..], Vec::as_slice);
                match pair
                    .iter()
                    .map(number_of)
                    .collect::<Option<Vec<f64>>>()
                    .as_deref()
                {
                    Some(&[least, most]) if least <= most => Ok((name.clone(), least, most)),
                    _ => Err(ParamsError::new(
                        format!("{}.\"{name}\" = {value} is no range", self.name(key)),
                        "give the least and the greatest value, as [600, 2600]",
                    )),
                }
            })
            .collect()
    }

    fn pair(
        &self,
        key: &str,
        row: &Value,
        first: &RangeInclusive<f64>,
        second: &RangeInclusive<f64>,
    ) -> SectionResult<(f64, f64)> {
        let numbers: Vec<f64> = row
            .as_array()
            .map(|list| list.iter().filter_map(number_of).collect())
            .unwrap_or_default();
        match numbers[..] {
            [a, b] if first.contains(&a) && second.contains(&b) => Ok((a, b)),
            [a, _] if !first.contains(&a) => Err(out_of_range_error(&self.name(key), row, first)),
            [_, _] => Err(out_of_range_error(&self.name(key), row, second)),
            _ => Err(self.wrong_type(key, "a list of pairs of numbers", row)),
        }
    }
}

/// A number, whole or not.
pub(crate) fn number_of(value: &Value) -> Option<f64> {
    value
        .as_float()
        .or(value.as_integer().map(|whole| whole as f64))
}

// Numbers with a unit: read in the unit of their key, kept and bounded in the unit of the model's field.

const MB: u64 = 1_000_000;

impl ProfileSection<'_> {
    /// A duration given in microseconds; the range is in nanoseconds.
    pub(crate) fn micros(
        &mut self,
        key: &'static str,
        range: RangeInclusive<Nanos>,
    ) -> SectionResult<Nanos> {
        self.number(key, range_in_micros(&range))
            .map(nanos_of_micros)
    }

    /// As [`ProfileSection::micros`], with a value in nanoseconds for an absent key.
    pub(crate) fn micros_or(
        &mut self,
        key: &'static str,
        default_ns: Nanos,
        range: RangeInclusive<Nanos>,
    ) -> SectionResult<Nanos> {
        let default_us = default_ns as f64 / 1e3;
        self.number_or(key, default_us, range_in_micros(&range))
            .map(nanos_of_micros)
    }

    /// A duration given in milliseconds; the range is in nanoseconds.
    pub(crate) fn millis(
        &mut self,
        key: &'static str,
        range: RangeInclusive<Nanos>,
    ) -> SectionResult<Nanos> {
        let range_ms = *range.start() as f64 / 1e6..=*range.end() as f64 / 1e6;
        Ok((self.number(key, range_ms)? * 1e6).round() as Nanos)
    }

    /// The time that a link takes for a sector, in nanoseconds, from its rate in 10⁶ bytes per second; 0 for a
    /// link without limit.
    pub(crate) fn link_ns(&mut self, key: &'static str) -> SectionResult<f64> {
        let mb_per_s = self.number(key, LINK_MB_PER_S)?;
        if mb_per_s == 0.0 {
            return Ok(0.0);
        }
        self.require(key, mb_per_s, SLOWEST_MB_PER_S..=*LINK_MB_PER_S.end())?;
        Ok(SECTOR_BYTES as f64 * 1e3 / mb_per_s)
    }

    /// As [`ProfileSection::link_ns`], of a key that may be absent.
    pub(crate) fn optional_link_ns(&mut self, key: &'static str) -> SectionResult<Option<f64>> {
        self.optional(key, |section| section.link_ns(key))
    }

    /// A size given in 10⁶ bytes, as drives are sold; in bytes.
    pub(crate) fn capacity(&mut self, key: &'static str) -> SectionResult<u64> {
        Ok(self.integer(key, 1..=CAPACITY_BYTES.end() / MB)? * MB)
    }

    /// As [`ProfileSection::capacity`], from 0 on and with a value in bytes for an absent key.
    pub(crate) fn capacity_or(&mut self, key: &'static str, default: u64) -> SectionResult<u64> {
        Ok(self.integer_or(key, default / MB, 0..=CAPACITY_BYTES.end() / MB)? * MB)
    }

    /// A size given in KiB; the range is in sectors, and so is the result.
    pub(crate) fn kib(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
    ) -> SectionResult<u64> {
        Ok(self.integer(key, range_in_kib(&range))? * 2)
    }

    /// As [`ProfileSection::kib`], with a value in sectors for an absent key.
    pub(crate) fn kib_or(
        &mut self,
        key: &'static str,
        default_sectors: u64,
        range: RangeInclusive<u64>,
    ) -> SectionResult<u64> {
        Ok(self.integer_or(key, default_sectors / 2, range_in_kib(&range))? * 2)
    }
}

/// A range of nanoseconds in microseconds.
pub(crate) fn range_in_micros(range: &RangeInclusive<Nanos>) -> RangeInclusive<f64> {
    *range.start() as f64 / 1e3..=*range.end() as f64 / 1e3
}

/// Microseconds in nanoseconds.
pub(crate) fn nanos_of_micros(us: f64) -> Nanos {
    (us * 1e3).round() as Nanos
}

fn range_in_kib(range: &RangeInclusive<u64>) -> RangeInclusive<u64> {
    range.start().div_ceil(2)..=range.end() / 2
}
