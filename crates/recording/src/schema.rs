//! The columns of the five tables; docs/reference/recordings.md explains their meaning.

use crate::{
    Block, BlockOp, Call, CallKind, File, NONE, Role, State, StateKind, Thread, ThreadClass,
    TransactionStatus, UNKNOWN,
};

/// A number that is always there.
macro_rules! number {
    ($field:ident) => {
        Column {
            name: stringify!($field),
            cell: Cell::Number {
                get: |row| i64::try_from(row.$field).ok(),
                set: |row, value| put(&mut row.$field, value),
                optional: false,
            },
            rising: false,
            added: false,
        }
    };
}

/// A number that differs little from its neighbours.
macro_rules! rising {
    ($field:ident) => {
        Column {
            rising: true,
            ..number!($field)
        }
    };
}

/// A number with a reserved value for null.
macro_rules! optional {
    ($field:ident, $absent:expr) => {
        Column {
            name: stringify!($field),
            cell: Cell::Number {
                get: |row| {
                    i64::try_from(row.$field)
                        .ok()
                        .filter(|_| row.$field != $absent)
                },
                set: |row, value| put_or(&mut row.$field, $absent, value),
                optional: true,
            },
            rising: false,
            added: false,
        }
    };
}

/// A variant of an enumeration.
macro_rules! word {
    ($field:ident, $type:ident) => {
        Column {
            name: stringify!($field),
            cell: Cell::Word {
                words: $type::WORDS,
                get: |row| Some(place($type::ALL, row.$field)),
                set: |row, value| row.$field = $type::ALL[value.unwrap_or_default()],
                optional: false,
            },
            rising: false,
            added: false,
        }
    };
}

macro_rules! text {
    ($field:ident) => {
        Column {
            name: stringify!($field),
            cell: Cell::Text {
                get: |row| &row.$field,
                set: |row, value| row.$field = value,
            },
            rising: false,
            added: false,
        }
    };
}

macro_rules! flag {
    ($field:ident) => {
        Column {
            name: stringify!($field),
            cell: Cell::Flag {
                get: |row| row.$field,
                set: |row, value| row.$field = value,
            },
            rising: false,
            added: false,
        }
    };
}

impl Table for Thread {
    const NAME: &'static str = "threads";

    fn blank() -> Self {
        Self {
            pid: 0,
            tid: 0,
            name: String::new(),
            class: ThreadClass::Other,
        }
    }

    fn columns() -> Vec<Column<Self>> {
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

    fn blank() -> Self {
        Self {
            path: String::new(),
            role: None,
            device: NONE,
            size_bytes: 0,
        }
    }

    fn columns() -> Vec<Column<Self>> {
        let role = Column {
            name: "role",
            cell: Cell::Word {
                words: ROLE_WORDS,
                get: |row: &Self| row.role.map(|role| place(&Role::ALL, role)),
                set: |row, value| row.role = value.map(|at| Role::ALL[at]),
                optional: true,
            },
            rising: false,
            added: false,
        };
        vec![
            row_number("file"),
            text!(path),
            role,
            optional!(device, NONE),
            number!(size_bytes),
        ]
    }
}

impl Table for State {
    const NAME: &'static str = "states";

    fn blank() -> Self {
        Self {
            thread: 0,
            start_ns: 0,
            end_ns: 0,
            kind: StateKind::Cpu,
            cpu: 0,
            waker: NONE,
            call: NONE,
        }
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            number!(thread),
            rising!(start_ns),
            rising!(end_ns),
            word!(kind, StateKind),
            number!(cpu),
            optional!(waker, NONE),
            Column {
                rising: true,
                ..optional!(call, NONE)
            },
        ]
    }
}

impl Table for Call {
    const NAME: &'static str = "calls";

    fn blank() -> Self {
        Self {
            thread: 0,
            start_ns: 0,
            end_ns: 0,
            kind: CallKind::Other,
            file: NONE,
            offset_bytes: UNKNOWN,
            size_bytes: 0,
            asynchronous: false,
            failed: false,
            transaction_status: None,
        }
    }

    fn columns() -> Vec<Column<Self>> {
        let transaction_status = Column {
            name: "transaction_status",
            cell: Cell::Word {
                words: TransactionStatus::WORDS,
                get: |row: &Self| {
                    (row.transaction_status).map(|status| place(TransactionStatus::ALL, status))
                },
                set: |row, value| {
                    row.transaction_status = value.map(|at| TransactionStatus::ALL[at]);
                },
                optional: true,
            },
            rising: false,
            added: true,
        };
        vec![
            row_number("call"),
            number!(thread),
            rising!(start_ns),
            rising!(end_ns),
            word!(kind, CallKind),
            optional!(file, NONE),
            Column {
                rising: true,
                ..optional!(offset_bytes, UNKNOWN)
            },
            number!(size_bytes),
            flag!(asynchronous),
            flag!(failed),
            transaction_status,
        ]
    }
}

impl Table for Block {
    const NAME: &'static str = "blocks";

    fn blank() -> Self {
        Self {
            device: 0,
            sector: 0,
            sectors: 0,
            op: BlockOp::Read,
            fua: false,
            preflush: false,
            sync: false,
            meta: false,
            issued_ns: 0,
            completed_ns: 0,
            thread: NONE,
            file: NONE,
        }
    }

    fn columns() -> Vec<Column<Self>> {
        vec![
            number!(device),
            Column {
                rising: true,
                ..optional!(sector, UNKNOWN)
            },
            number!(sectors),
            word!(op, BlockOp),
            flag!(fua),
            flag!(preflush),
            flag!(sync),
            flag!(meta),
            rising!(issued_ns),
            rising!(completed_ns),
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

/// Words of the roles, in the order of [`Role::ALL`].
pub(crate) const ROLE_WORDS: &[&str] = &[
    "log",
    "doublewrite",
    "data",
    "index",
    "undo",
    "temp",
    "system",
    "archive",
    "selected",
];

/// Place of a variant in its list.
pub(crate) fn place<T: PartialEq>(all: &[T], one: T) -> usize {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;

    #[test]
    fn roles_have_their_words_in_order() {
        let names: Vec<_> = Role::ALL.iter().map(|role| role.name()).collect();
        assert_eq!(names, ROLE_WORDS);
    }
}
