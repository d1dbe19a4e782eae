//! SQLite.

use super::rules::{EngineRules, FlushSharing, INFERRED, WriteAheadLog};
use crate::Grouping;

/// Sleeps of the busy handler between attempts (sqlite3.c, `sqliteDefaultBusyCallback`).
const BUSY_MS: [u64; 12] = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100];

const BUSY_NS: [u64; 12] = {
    let mut busy_ns = BUSY_MS;
    let mut at = 0;
    while at < busy_ns.len() {
        busy_ns[at] *= 1_000_000;
        at += 1;
    }
    busy_ns
};

/// Sources: https://sqlite.org/lockingv3.html; the log's format, https://sqlite.org/fileformat2.html#walformat.
pub(super) const RULES: EngineRules = EngineRules {
    name: "sqlite",
    flush_sharing: FlushSharing::Always(Grouping::Exclusive),
    write_ahead_log: Some(WriteAheadLog {
        kept: ("journal_mode", "wal"),
        header_bytes: 32,
        frame_header_bytes: 24,
        page_bytes: ("page_size", 4096),
        checkpoint_pages: ("wal_autocheckpoint", 1000),
    }),
    retry_ns: &BUSY_NS,
    ..INFERRED
};
