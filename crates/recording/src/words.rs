//! The words that stand for the variants of an enumeration in tables.

use crate::{BlockOp, CallKind, StateKind, ThreadClass, TransactionStatus};

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

#[cfg(test)]
mod tests {
    use super::ROLE_WORDS;
    use crate::Role;

    #[test]
    fn roles_have_their_words_in_order() {
        let names: Vec<_> = Role::ALL.iter().map(|role| role.name()).collect();
        assert_eq!(names, ROLE_WORDS);
    }
}
