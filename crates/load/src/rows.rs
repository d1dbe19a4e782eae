//! Rows for a table, from any generator.

use crate::control::Control;
use crate::value::Value;

/// Rows between two checks of the control: to report progress, and to stop if asked.
const CONTROL_ROWS: u64 = 4096;

/// Makes the rows of one piece of a table.
pub(crate) trait RowSource: Send + Sync {
    /// Write the next row over the last one; false at the end.
    fn next_row(&mut self, values: &mut [Value]) -> bool;
}

/// Consecutive rows of one table, made one at a time.
pub struct Rows {
    table: String,
    columns: Vec<String>,
    source: Box<dyn RowSource>,
    expected: u64,
    values: Vec<Value>,
    /// Rows not yet reported to the control.
    untold: u64,
    control: Control,
}

impl Rows {
    pub(crate) fn new(
        table: &str,
        columns: Vec<String>,
        source: Box<dyn RowSource>,
        expected: u64,
        control: &Control,
    ) -> Self {
        Self {
            table: table.to_owned(),
            values: vec![Value::Int(0); columns.len()],
            columns,
            source,
            expected,
            untold: 0,
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
    pub fn next_row(&mut self) -> Option<&[Value]> {
        let full = self.untold == CONTROL_ROWS;
        if full {
            self.tell();
        }
        if (full && self.control.is_stopped()) || !self.source.next_row(&mut self.values) {
            self.tell();
            return None;
        }
        self.untold += 1;
        Some(&self.values)
    }

    fn tell(&mut self) {
        self.control.add_done(std::mem::take(&mut self.untold));
    }
}
