//! The columns of the five tables; docs/reference/recordings.md explains their meaning.

use crate::table::{Cell, Column, Table, put, put_or, row_number};
use crate::words::{ROLE_WORDS, place};
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
