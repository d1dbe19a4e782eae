//! Lists of numbers in a TOML table.

use std::ops::RangeInclusive;

use toml::Value;

use super::{Form, Section};
use crate::problem::{Problem, SectionResult, out_of_range};

impl Section<'_> {
    /// One number in `range`, or a list of up to `most` of them.
    pub(crate) fn numbers(
        &mut self,
        key: &'static str,
        most: usize,
        range: RangeInclusive<f64>,
    ) -> SectionResult<Vec<f64>> {
        self.note(
            key,
            Form::Numbers {
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
            Some(_) => Err(out_of_range(&self.name(key), value, &range)),
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
            Form::Pairs {
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
        self.note(key, Form::Ranges);
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
                    _ => Err(Problem::new(
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
            [a, _] if !first.contains(&a) => Err(out_of_range(&self.name(key), row, first)),
            [_, _] => Err(out_of_range(&self.name(key), row, second)),
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
