//! Rows of the TPC-H-derived tables, from the text that their generator makes.

use tierwise_tpch::{Kind, Lines, Source, Table as TpchTable, TpchError};

use crate::control::Control;
use crate::error::LoadError;
use crate::rows::{RowSource, Rows};
use crate::value::Value;
use crate::workload::TableSource;

/// One part of a table, line by line.
struct Parsed {
    lines: Lines,
    kinds: Vec<Kind>,
}

impl RowSource for Parsed {
    fn next_row(&mut self, values: &mut [Value]) -> bool {
        let Some(line) = self.lines.next_line() else {
            return false;
        };
        for ((field, kind), value) in line.split('|').zip(&self.kinds).zip(values) {
            match kind {
                Kind::Whole => *value = Value::Int(field.parse().expect("a whole number")),
                Kind::Text => value.text_mut().push_str(field),
            }
        }
        true
    }
}

/// A table in pieces of about `most` rows.
pub(crate) fn pieces(
    name: &str,
    source: &TableSource,
    most: u64,
    control: &Control,
) -> Result<Vec<Rows>, LoadError> {
    let refused = |error: TpchError| LoadError::Workload(format!("tables.{name}.source: {error}"));
    let source = resolve(source).map_err(refused)?;
    let columns = source.of().columns();
    let parts = source.rows().div_ceil(most).max(1) as u32;
    let piece = |part| {
        let parsed = Parsed {
            lines: source.lines(part, parts).map_err(refused)?,
            kinds: columns.iter().map(|column| column.kind).collect(),
        };
        let names = columns.iter().map(|column| column.name.to_owned());
        let expected = source.rows() / u64::from(parts);
        Ok(Rows::new(
            name,
            names.collect(),
            Box::new(parsed),
            expected,
            control,
        ))
    };
    (1..=parts).map(piece).collect()
}

fn resolve(source: &TableSource) -> Result<Source, TpchError> {
    let TableSource::Tpch {
        table,
        scale_factor,
        refresh_sets,
    } = source;
    let table = TpchTable::named(table)?;
    match *refresh_sets {
        None => Source::table(table, *scale_factor),
        Some(sets) => Source::refresh(table, *scale_factor, sets),
    }
}
