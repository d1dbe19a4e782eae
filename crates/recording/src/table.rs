//! How a row becomes cells: one description for the schema, the writer and the reader of a table.

/// Type of a cell, and how its value is read from a row and written into it.
///
/// A setter returns false where the value cannot stand in the row.
pub(crate) enum Cell<R> {
    /// The row's own number.
    Row,
    /// A whole number; null where `optional`.
    Number {
        get: fn(&R) -> Option<i64>,
        set: fn(&mut R, Option<i64>) -> bool,
        optional: bool,
    },
    /// One of a few words, by its place among them; null where `optional`.
    Word {
        words: &'static [&'static str],
        get: fn(&R) -> Option<usize>,
        set: fn(&mut R, Option<usize>),
        optional: bool,
    },
    /// Any text.
    Text {
        get: fn(&R) -> &str,
        set: fn(&mut R, String),
    },
    /// Yes or no.
    Flag {
        get: fn(&R) -> bool,
        set: fn(&mut R, bool),
    },
}

/// A column.
pub(crate) struct Column<R> {
    /// Its name in the file.
    pub name: &'static str,
    /// Type of its cells.
    pub cell: Cell<R>,
    /// Whether neighbours differ by little, as times and row numbers do.
    pub rising: bool,
    /// Whether older recordings lack it: their cells are null.
    pub added: bool,
}

impl<R> Column<R> {
    /// Whether its cells may be null.
    pub fn is_optional(&self) -> bool {
        match self.cell {
            Cell::Number { optional, .. } | Cell::Word { optional, .. } => optional,
            Cell::Row | Cell::Text { .. } | Cell::Flag { .. } => false,
        }
    }
}

/// Rows of one kind, in a file of their own.
pub(crate) trait Table: Sized + 'static {
    /// Name of the table; its file is called so too.
    const NAME: &'static str;

    /// A row to be filled cell by cell.
    fn blank() -> Self;

    /// Its columns, in the order of the file.
    fn columns() -> Vec<Column<Self>>;
}

/// A column of the row's own number.
pub(crate) fn row_number<R>(name: &'static str) -> Column<R> {
    Column {
        name,
        cell: Cell::Row,
        rising: true,
        added: false,
    }
}

/// Put a number into a field, if it fits.
pub(crate) fn put<T: TryFrom<i64>>(slot: &mut T, value: Option<i64>) -> bool {
    match value.map(T::try_from) {
        Some(Ok(value)) => {
            *slot = value;
            true
        }
        _ => false,
    }
}

/// The same for a field in which `absent` stands for null, and for nothing else.
pub(crate) fn put_or<T: TryFrom<i64> + PartialEq>(
    slot: &mut T,
    absent: T,
    value: Option<i64>,
) -> bool {
    if value.is_none() {
        *slot = absent;
        return true;
    }
    put(slot, value) && *slot != absent
}
