//! Typed, range-checked reading of one TOML table.

mod lists;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use toml::{Table, Value};

use crate::Nanos;
use crate::problem::{Problem, SectionResult};

/// One table of a profile. Remembers which keys were read, so that unknown ones can be refused.
pub(crate) struct Section<'a> {
    path: String,
    table: &'a Table,
    asked: BTreeSet<&'static str>,
}

impl<'a> Section<'a> {
    pub(crate) fn new(path: impl Into<String>, table: &'a Table) -> Self {
        Self {
            path: path.into(),
            table,
            asked: BTreeSet::new(),
        }
    }

    /// A number in `range`.
    pub(crate) fn number(
        &mut self,
        key: &'static str,
        range: RangeInclusive<f64>,
    ) -> SectionResult<f64> {
        let value = self.value(key)?;
        let number = match value {
            Value::Float(number) => *number,
            Value::Integer(number) => *number as f64,
            other => return Err(self.wrong_type(key, "a number", other)),
        };
        if range.contains(&number) {
            Ok(number)
        } else {
            Err(self.out_of_range(key, value, &range))
        }
    }

    /// A whole number in `range`.
    pub(crate) fn integer(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
    ) -> SectionResult<u64> {
        let value = self.value(key)?;
        let Value::Integer(number) = value else {
            return Err(self.wrong_type(key, "a whole number", value));
        };
        match u64::try_from(*number) {
            Ok(number) if range.contains(&number) => Ok(number),
            _ => Err(self.out_of_range(key, value, &range)),
        }
    }

    /// As [`Section::integer`], with a value for an absent key.
    pub(crate) fn integer_or(
        &mut self,
        key: &'static str,
        default: u64,
        range: RangeInclusive<u64>,
    ) -> SectionResult<u64> {
        if self.has(key) {
            self.integer(key, range)
        } else {
            Ok(default)
        }
    }

    /// As [`Section::number`], with a value for an absent key.
    pub(crate) fn number_or(
        &mut self,
        key: &'static str,
        default: f64,
        range: RangeInclusive<f64>,
    ) -> SectionResult<f64> {
        if self.has(key) {
            self.number(key, range)
        } else {
            Ok(default)
        }
    }

    /// As [`Section::micros`], with a value in microseconds for an absent key.
    pub(crate) fn micros_or(
        &mut self,
        key: &'static str,
        default_us: f64,
        range: RangeInclusive<f64>,
    ) -> SectionResult<Nanos> {
        if self.has(key) {
            self.micros(key, range)
        } else {
            Ok((default_us * 1e3) as Nanos)
        }
    }

    /// A duration given in microseconds.
    pub(crate) fn micros(
        &mut self,
        key: &'static str,
        range: RangeInclusive<f64>,
    ) -> SectionResult<Nanos> {
        Ok((self.number(key, range)? * 1e3).round() as Nanos)
    }

    /// A size given in 10^6 bytes, as drives are sold.
    pub(crate) fn capacity(&mut self, key: &'static str) -> SectionResult<u64> {
        Ok(self.integer(key, 1..=1_000_000_000)? * 1_000_000)
    }

    pub(crate) fn flag(&mut self, key: &'static str) -> SectionResult<bool> {
        match self.value(key)? {
            Value::Boolean(flag) => Ok(*flag),
            other => Err(self.wrong_type(key, "true or false", other)),
        }
    }

    /// As [`Section::flag`], with a value for an absent key.
    pub(crate) fn flag_or(&mut self, key: &'static str, default: bool) -> SectionResult<bool> {
        if self.has(key) {
            self.flag(key)
        } else {
            Ok(default)
        }
    }

    pub(crate) fn text(&mut self, key: &'static str) -> SectionResult<&'a str> {
        match self.value(key)? {
            Value::String(text) => Ok(text),
            other => Err(self.wrong_type(key, "a text", other)),
        }
    }

    /// One of a few words.
    pub(crate) fn word(&mut self, key: &'static str, allowed: &[&str]) -> SectionResult<&'a str> {
        let text = self.text(key)?;
        if allowed.contains(&text) {
            return Ok(text);
        }
        let name = self.name(key);
        Err(Problem::new(
            format!("{name} = \"{text}\" is not known"),
            format!("use one of: {}", allowed.join(", ")),
        ))
    }

    /// A table inside this one.
    pub(crate) fn section(&mut self, key: &'static str) -> SectionResult<Section<'a>> {
        match self.value(key)? {
            Value::Table(table) => Ok(Section::new(self.name(key), table)),
            other => Err(self.wrong_type(key, "a table", other)),
        }
    }

    /// A list of tables, at least one.
    pub(crate) fn sections(&mut self, key: &'static str) -> SectionResult<Vec<Section<'a>>> {
        let value = self.value(key)?;
        let tables = value
            .as_array()
            .and_then(|list| list.iter().map(Value::as_table).collect::<Option<Vec<_>>>());
        match tables {
            Some(tables) if !tables.is_empty() => Ok((0..)
                .zip(tables)
                .map(|(index, table): (usize, _)| {
                    Section::new(format!("{}[{index}]", self.name(key)), table)
                })
                .collect()),
            _ => Err(self.wrong_type(key, "a list of one or more tables", value)),
        }
    }

    pub(crate) fn has(&self, key: &str) -> bool {
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
                Err(Problem::new(
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
            Problem::new(format!("missing key {name}"), format!("add {name}"))
        })
    }

    fn wrong_type(&self, key: &str, wanted: &str, value: &Value) -> Problem {
        Problem::new(
            format!("{} is a {}", self.name(key), value.type_str()),
            format!("give {wanted}"),
        )
    }

    fn out_of_range<T: std::fmt::Display>(
        &self,
        key: &str,
        value: &Value,
        range: &RangeInclusive<T>,
    ) -> Problem {
        Problem::new(
            format!("{} = {value} is impossible", self.name(key)),
            format!("give a value from {} to {}", range.start(), range.end()),
        )
    }
}
