//! Rows whose columns are drawn from generators.

use crate::context::Context;
use crate::control::Control;
use crate::derived::Derivation;
use crate::draw::Generator;
use crate::error::LoadError;
use crate::random::{Random, random};
use crate::rows::{RowSource, Rows};
use crate::value::Value;
use crate::workload::Table;

/// Consecutive rows of a table.
struct Generated {
    generators: Vec<Generator>,
    /// Columns in the order in which they are drawn.
    order: Vec<usize>,
    random: Random,
    next: u64,
    end: u64,
}

impl RowSource for Generated {
    fn next_row(&mut self, values: &mut [Value]) -> bool {
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
pub(crate) fn piece(
    table: &Table,
    number: u64,
    first: u64,
    most: u64,
    seed: u64,
    control: &Control,
) -> Result<Rows, LoadError> {
    let columns = &table.columns;
    let in_table = |problem| LoadError::Workload(format!("tables.{}.{problem}", table.name));
    let named = columns
        .iter()
        .map(|one| (one.name.as_str(), &one.generator));
    let derivation =
        Derivation::new(named).map_err(|problem| in_table(format!("columns: {problem}")))?;
    let context = Context {
        seed,
        client: 0,
        clients: 1,
    };
    let position = |name: &str| columns.iter().position(|one| one.name == name);
    let generators = columns.iter().map(|column| {
        Generator::new(&column.generator, context, None, position)
            .map_err(|problem| in_table(format!("columns.{}: {problem}", column.name)))
    });
    let end = table.rows.min(first + most);
    let generated = Generated {
        generators: generators.collect::<Result<_, _>>()?,
        order: derivation.in_order((0..columns.len()).collect()),
        random: random(seed, &[number, first]),
        next: first,
        end,
    };
    let names = columns.iter().map(|column| column.name.clone()).collect();
    Ok(Rows::new(
        &table.name,
        names,
        Box::new(generated),
        end - first,
        control,
    ))
}
