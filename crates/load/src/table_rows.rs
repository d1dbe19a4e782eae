//! Rows for a table, from any generator.

use tierwise_tpch::{FieldKind, TableLines, TpchError, TpchRowSource, TpchTable};

use crate::drawn_value::DrawnValue;
use crate::error::LoadError;
use crate::expression::GeneratorDependencies;
use crate::run_control::RunControl;
use crate::value_generators::{DrawingClient, RandomSource, ValueGenerator, random_stream};
use crate::workload::{TableSource, WorkloadTable};

/// Rows between two checks of the control: to report progress, and to stop if asked.
const CONTROL_ROWS: u64 = 4096;

/// Makes the rows of one piece of a table.
pub(crate) trait RowSource: Send + Sync {
    /// Write the next row over the last one; false at the end.
    fn next_row(&mut self, values: &mut [DrawnValue]) -> bool;
}

/// Consecutive rows of one table, made one at a time.
pub struct TableRows {
    table: String,
    columns: Vec<String>,
    source: Box<dyn RowSource>,
    expected: u64,
    values: Vec<DrawnValue>,
    /// Rows not yet reported to the control.
    unreported: u64,
    control: RunControl,
}

impl TableRows {
    pub(crate) fn new(
        table: &str,
        columns: Vec<String>,
        source: Box<dyn RowSource>,
        expected: u64,
        control: &RunControl,
    ) -> Self {
        Self {
            table: table.to_owned(),
            values: vec![DrawnValue::Int(0); columns.len()],
            columns,
            source,
            expected,
            unreported: 0,
            control: control.clone(),
        }
    }

    /// Name of the table.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// Names of the columns, in the order of the values.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(String::as_str)
    }

    /// About how many values there are.
    pub(crate) fn weight(&self) -> u64 {
        self.expected * self.columns.len() as u64
    }

    /// Make the next row; `None` at the end, or when the caller wants to stop.
    pub fn next_row(&mut self) -> Option<&[DrawnValue]> {
        let full = self.unreported == CONTROL_ROWS;
        if full {
            self.report();
        }
        if (full && self.control.is_stopped()) || !self.source.next_row(&mut self.values) {
            self.report();
            return None;
        }
        self.unreported += 1;
        Some(&self.values)
    }

    fn report(&mut self) {
        self.control.add_done(std::mem::take(&mut self.unreported));
    }
}

// Rows whose columns are drawn from generators.

/// Consecutive rows of a table.
struct GeneratedRows {
    generators: Vec<ValueGenerator>,
    /// Columns in the order in which they are drawn.
    order: Vec<usize>,
    random: RandomSource,
    next: u64,
    end: u64,
}

impl RowSource for GeneratedRows {
    fn next_row(&mut self, values: &mut [DrawnValue]) -> bool {
        if self.next == self.end {
            return false;
        }
        for &column in &self.order {
            self.generators[column].draw(&mut self.random, self.next, values, column);
        }
        self.next += 1;
        true
    }
}

/// At most `most` rows of a table, from row `first` on; `number` is that of the table.
pub(crate) fn table_piece(
    table: &WorkloadTable,
    number: u64,
    first: u64,
    most: u64,
    seed: u64,
    control: &RunControl,
) -> Result<TableRows, LoadError> {
    let columns = &table.columns;
    let in_table = |problem| LoadError::Workload(format!("tables.{}.{problem}", table.name));
    let named = columns
        .iter()
        .map(|column| (column.name.as_str(), &column.generator));
    let derivation = GeneratorDependencies::new(named)
        .map_err(|problem| in_table(format!("columns: {problem}")))?;
    let context = DrawingClient {
        seed,
        client: 0,
        clients: 1,
    };
    let position = |name: &str| columns.iter().position(|column| column.name == name);
    let generators = columns.iter().map(|column| {
        ValueGenerator::new(&column.generator, context, None, position)
            .map_err(|problem| in_table(format!("columns.{}: {problem}", column.name)))
    });
    let end = table.rows.min(first + most);
    let generated = GeneratedRows {
        generators: generators.collect::<Result<_, _>>()?,
        order: derivation.in_order((0..columns.len()).collect()),
        random: random_stream(seed, &[number, first]),
        next: first,
        end,
    };
    let names = columns.iter().map(|column| column.name.clone()).collect();
    Ok(TableRows::new(
        &table.name,
        names,
        Box::new(generated),
        end - first,
        control,
    ))
}

// Rows of the TPC-H-derived tables, from the text that their generator makes.

/// One part of a table, line by line.
struct ParsedRows {
    lines: TableLines,
    kinds: Vec<FieldKind>,
}

impl RowSource for ParsedRows {
    fn next_row(&mut self, values: &mut [DrawnValue]) -> bool {
        let Some(line) = self.lines.next_line() else {
            return false;
        };
        for ((field, kind), value) in line.split('|').zip(&self.kinds).zip(values) {
            match kind {
                FieldKind::Whole => {
                    *value = DrawnValue::Int(field.parse().expect("a whole number"))
                }
                FieldKind::Text => value.text_mut().push_str(field),
            }
        }
        true
    }
}

/// A table in pieces of about `most` rows.
pub(crate) fn split_table(
    name: &str,
    source: &TableSource,
    most: u64,
    control: &RunControl,
) -> Result<Vec<TableRows>, LoadError> {
    let refused = |error: TpchError| LoadError::Workload(format!("tables.{name}.source: {error}"));
    let source = resolve_generators(source).map_err(refused)?;
    let columns = source.of().columns();
    let parts = source.rows().div_ceil(most).max(1) as u32;
    let piece = |part| {
        let parsed = ParsedRows {
            lines: source.lines(part, parts).map_err(refused)?,
            kinds: columns.iter().map(|column| column.kind).collect(),
        };
        let names = columns.iter().map(|column| column.name.to_owned());
        let expected = source.rows() / u64::from(parts);
        Ok(TableRows::new(
            name,
            names.collect(),
            Box::new(parsed),
            expected,
            control,
        ))
    };
    (1..=parts).map(piece).collect()
}

fn resolve_generators(source: &TableSource) -> Result<TpchRowSource, TpchError> {
    let TableSource::Tpch {
        table,
        scale_factor,
        refresh_sets,
    } = source;
    let table = TpchTable::named(table)?;
    match *refresh_sets {
        None => TpchRowSource::table(table, *scale_factor),
        Some(sets) => TpchRowSource::refresh(table, *scale_factor, sets),
    }
}
