//! The text that comments are cut from (TPC-H specification, clause 4.2.2.14).

use std::sync::{Arc, Mutex};

use tpchgen::distribution::Distributions;
use tpchgen::text::TextPool;

/// As the specification has it.
const BYTES: f64 = (300 * 1024 * 1024) as f64;
/// Enough for comments not to repeat too soon in the smallest tables.
const BYTES_MIN: f64 = (3 * 1024 * 1024) as f64;

/// Kept from one table to the next: it takes longer to make than most tables.
static KEPT: Mutex<Option<Arc<TextPool>>> = Mutex::new(None);

/// The pool for tables of that size.
///
/// Below scale factor 1 it shrinks with the tables: only comments then differ from dbgen's. A pool three
/// times the size of its database would not fit into the memory that a study allows an engine.
pub(crate) fn text_pool(scale_factor: f64) -> Arc<TextPool> {
    let bytes = (BYTES * scale_factor).clamp(BYTES_MIN, BYTES) as i32;
    // Locked while the pool is made, so that other threads wait for it rather than make another.
    let mut kept = KEPT.lock().expect("no panic under the lock");
    if let Some(pool) = kept.as_ref().filter(|pool| pool.size() == bytes) {
        return Arc::clone(pool);
    }
    let pool = Arc::new(TextPool::new(bytes, Distributions::static_default()));
    *kept = Some(Arc::clone(&pool));
    pool
}

/// Give back the memory that is kept for the next table: up to 300 MiB.
pub fn release_text() {
    *KEPT.lock().expect("no panic under the lock") = None;
}
