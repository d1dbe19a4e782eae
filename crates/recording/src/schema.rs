//! The columns of the five tables; docs/reference/recordings.md explains their meaning.

use crate::{
    Block, BlockOp, Call, CallKind, File, NONE, Role, State, StateKind, Thread, ThreadClass,
    TransactionStatus, UNKNOWN,
};

/// A number that is always there.
macro_rules! number {
    ($field:ident) => {
        TableColumn::of(
            stringify!($field),
            Cell::Number {
                get: |row: &Self| i64::try_from(row.$field).ok(),
                set: |row, value| put_number(&mut row.$field, value),
                optional: false,
            },
        )
    };
}

/// A number with a reserved value for null.
macro_rules! optional {
    ($field:ident, $absent:expr) => {
        TableColumn::of(
            stringify!($field),
            Cell::Number {
                get: |row: &Self| {
                    i64::try_from(row.$field)
                        .ok()
                        .filter(|_| row.$field != $absent)
                },
                set: |row, value| put_optional_number(&mut row.$field, $absent, value),
                optional: true,
            },
        )
    };
}

/// A variant of an enumeration.
macro_rules! word {
    ($field:ident, $type:ident) => {
        TableColumn::of(
            stringify!($field),
            Cell::Word {
                words: $type::WORDS,
                get: |row: &Self| Some(variant_place(&$type::ALL, row.$field)),
                set: |row, value| row.$field = $type::ALL[value.unwrap_or_default()],
                optional: false,
            },
        )
    };
}

/// A variant of an enumeration, or null.
macro_rules! optional_word {
    ($field:ident, $type:ident) => {
        TableColumn::of(
            stringify!($field),
            Cell::Word {
                words: $type::WORDS,
                get: |row: &Self| {
                    row.$field
                        .map(|variant| variant_place(&$type::ALL, variant))
                },
                set: |row, value| row.$field = value.map(|at| $type::ALL[at]),
                optional: true,
            },
        )
    };
}

macro_rules! text {
    ($field:ident) => {
        TableColumn::of(
            stringify!($field),
            Cell::Text {
                get: |row: &Self| &row.$field,
                set: |row, value| row.$field = value,
            },
        )
    };
}

macro_rules! flag {
    ($field:ident) => {
        TableColumn::of(
            stringify!($field),
            Cell::Flag {
                get: |row: &Self| row.$field,
                set: |row, value| row.$field = value,
            },
        )
    };
}

impl Table for Thread {
    const NAME: &'static str = "threads";

    fn columns() -> Vec<TableColumn<Self>> {
        vec![
            row_number("thread"),
            number!(pid),
            number!(tid),
            text!(name),
            word!(class, ThreadClass),
        ]
    }
}

impl Table for File {
    const NAME: &'static str = "files";

    fn columns() -> Vec<TableColumn<Self>> {
        vec![
            row_number("file"),
            text!(path),
            optional_word!(role, Role),
            optional!(device, NONE),
            number!(size_bytes),
        ]
    }
}

impl Table for State {
    const NAME: &'static str = "states";

    fn columns() -> Vec<TableColumn<Self>> {
        vec![
            number!(thread),
            number!(start_ns).rising(),
            number!(end_ns).rising(),
            word!(kind, StateKind),
            number!(cpu),
            optional!(waker, NONE),
            optional!(call, NONE).rising(),
        ]
    }
}

impl Table for Call {
    const NAME: &'static str = "calls";

    fn columns() -> Vec<TableColumn<Self>> {
        vec![
            row_number("call"),
            number!(thread),
            number!(start_ns).rising(),
            number!(end_ns).rising(),
            word!(kind, CallKind),
            optional!(file, NONE),
            optional!(offset_bytes, UNKNOWN).rising(),
            number!(size_bytes),
            flag!(asynchronous),
            flag!(failed),
            optional_word!(transaction_status, TransactionStatus).added(),
        ]
    }
}

impl Table for Block {
    const NAME: &'static str = "blocks";

    fn columns() -> Vec<TableColumn<Self>> {
        vec![
            number!(device),
            optional!(sector, UNKNOWN).rising(),
            number!(sectors),
            word!(op, BlockOp),
            flag!(fua),
            flag!(preflush),
            flag!(sync),
            flag!(meta),
            number!(issued_ns).rising(),
            number!(completed_ns).rising(),
            optional!(thread, NONE),
            optional!(file, NONE),
        ]
    }
}

// The words that stand for the variants of an enumeration in tables.

macro_rules! words {
    ($type:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $type {
            /// Every one, in the order of reports.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// Their words, in the same order.
            pub(crate) const WORDS: &'static [&'static str] = &[$($word),+];

            /// Its word in tables and reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }
        }
    };
}

words!(ThreadClass {
    Session = "session",
    Client = "client",
    LogWriter = "log_writer",
    Background = "background",
    Kernel = "kernel",
    Other = "other",
});

words!(StateKind {
    Cpu = "cpu",
    Runnable = "runnable",
    Blocked = "blocked",
});

words!(CallKind {
    Read = "read",
    Write = "write",
    Sync = "sync",
    Resize = "resize",
    Name = "name",
    Receive = "receive",
    Send = "send",
    Poll = "poll",
    Lock = "lock",
    Sleep = "sleep",
    Await = "await",
    Other = "other",
});

words!(TransactionStatus {
    Unknown = "unknown",
    Idle = "idle",
    InTransaction = "in_transaction",
    Failed = "failed",
});

words!(BlockOp {
    Read = "read",
    Write = "write",
    Flush = "flush",
    Discard = "discard",
});

impl Role {
    /// Their words, in the order of [`Role::ALL`].
    const WORDS: &[&str] = &{
        let (mut words, mut at) = ([""; Self::ALL.len()], 0);
        while at < words.len() {
            words[at] = Self::ALL[at].name();
            at += 1;
        }
        words
    };
}

/// Place of a variant in its list.
fn variant_place<T: PartialEq>(all: &[T], one: T) -> usize {
    all.iter()
        .position(|other| *other == one)
        .expect("the list has every variant")
}

// How a row becomes cells: one description for the schema, the writer and the reader of a table.

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
pub(crate) struct TableColumn<R> {
    /// Its name in the file.
    pub name: &'static str,
    /// Type of its cells.
    pub cell: Cell<R>,
    /// Whether neighbours differ by little, as times and row numbers do.
    pub rising: bool,
    /// Whether older recordings lack it: their cells are null.
    pub added: bool,
}

impl<R> TableColumn<R> {
    fn of(name: &'static str, cell: Cell<R>) -> Self {
        Self {
            name,
            cell,
            rising: false,
            added: false,
        }
    }

    fn rising(self) -> Self {
        Self {
            rising: true,
            ..self
        }
    }

    fn added(self) -> Self {
        Self {
            added: true,
            ..self
        }
    }

    /// Whether its cells may be null.
    pub fn is_optional(&self) -> bool {
        match self.cell {
            Cell::Number { optional, .. } | Cell::Word { optional, .. } => optional,
            Cell::Row | Cell::Text { .. } | Cell::Flag { .. } => false,
        }
    }
}

/// Rows of one kind, in a file of their own.
pub(crate) trait Table: Default + 'static {
    /// Name of the table; its file is called so too.
    const NAME: &'static str;

    /// Its columns, in the order of the file.
    fn columns() -> Vec<TableColumn<Self>>;
}

/// A column of the row's own number.
fn row_number<R>(name: &'static str) -> TableColumn<R> {
    TableColumn::of(name, Cell::Row).rising()
}

/// Put a number into a field, if it fits.
fn put_number<T: TryFrom<i64>>(slot: &mut T, value: Option<i64>) -> bool {
    match value.map(T::try_from) {
        Some(Ok(value)) => {
            *slot = value;
            true
        }
        _ => false,
    }
}

/// The same for a field in which `absent` stands for null, and for nothing else.
fn put_optional_number<T: TryFrom<i64> + PartialEq>(
    slot: &mut T,
    absent: T,
    value: Option<i64>,
) -> bool {
    if value.is_none() {
        *slot = absent;
        return true;
    }
    put_number(slot, value) && *slot != absent
}
