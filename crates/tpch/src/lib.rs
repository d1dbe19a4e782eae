//! Rows of the TPC-H-derived decision-support tables and of their refresh sets, as delimited text.
//!
//! Derived from TPC-H; results are not comparable to published TPC results. The `tpchgen` crate generates the
//! rows of the specification's generator; the keys of the refresh sets follow clause 4.2.3. Rows are made in
//! batches of bounded size, whatever the scale factor.

mod tpch_table;

use std::fmt::{Display, Write};
use std::fs::File;
use std::io::Write as _;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

use tpchgen::distribution::Distributions;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};
use tpchgen::text::TextPool;

use crate::tpch_table::{inserted_key, order_number};
pub use tpch_table::{
    FieldKind, RefreshKeys, SETS_MAX, TpchColumn, TpchError, TpchRowSource, TpchTable,
};

// Rows as lines of text, made a batch at a time.

/// Separates the fields of a line; no field holds one.
const SEPARATOR: char = '|';

/// The lines of some batches of a table.
pub struct TableLines {
    source: TpchRowSource,
    pool: Arc<TextPool>,
    batches: Range<u32>,
    text: String,
    read: usize,
}

impl TableLines {
    pub(crate) fn new(source: TpchRowSource, batches: Range<u32>) -> Self {
        Self {
            pool: text_pool(source.scale_factor),
            source,
            batches,
            text: String::new(),
            read: 0,
        }
    }

    /// Fields of the next row, separated by `|`; `None` at the end.
    pub fn next_line(&mut self) -> Option<&str> {
        while self.read == self.text.len() {
            self.next_batch()?;
        }
        let start = self.read;
        let length = self.text[start..].find('\n').expect("every line ends");
        self.read = start + length + 1;
        Some(&self.text[start..start + length])
    }

    /// Whole lines of the rows that are read next, each with its end; `None` at the end.
    pub fn next_text(&mut self) -> Option<&str> {
        self.next_batch()?;
        self.read = self.text.len();
        Some(&self.text)
    }

    fn next_batch(&mut self) -> Option<()> {
        let batch = self.batches.next()?;
        self.text.clear();
        self.read = 0;
        match self.source.refresh_sets {
            None => self.write_loaded(batch as i32 + 1, self.source.batches() as i32),
            // The generator goes on behind the table's last row when it is asked for a part behind the last.
            Some(_) => self.write_refresh((SETS_MAX + batch) as i32 + 1, SETS_MAX as i32),
        }
        Some(())
    }

    fn write_loaded(&mut self, part: i32, parts: i32) {
        let (scale, words, pool) = (
            self.source.scale_factor,
            Distributions::static_default(),
            &*self.pool,
        );
        macro_rules! write_rows {
            ($generator:ident) => {
                write_lines(
                    $generator::new_with_distributions_and_text_pool(
                        scale, part, parts, words, pool,
                    )
                    .iter(),
                    &mut self.text,
                )
            };
        }
        match self.source.table {
            TpchTable::Region => write_lines(
                RegionGenerator::new_with_distributions_and_text_pool(words, pool).iter(),
                &mut self.text,
            ),
            TpchTable::Nation => write_lines(
                NationGenerator::new_with_distributions_and_text_pool(words, pool).iter(),
                &mut self.text,
            ),
            TpchTable::PartSupp => write_lines(
                PartSuppGenerator::new_with_text_pool(scale, part, parts, pool).iter(),
                &mut self.text,
            ),
            TpchTable::Supplier => write_rows!(SupplierGenerator),
            TpchTable::Customer => write_rows!(CustomerGenerator),
            TpchTable::Part => write_rows!(PartGenerator),
            TpchTable::Orders => write_rows!(OrderGenerator),
            TpchTable::LineItem => write_rows!(LineItemGenerator),
        }
    }

    fn write_refresh(&mut self, part: i32, parts: i32) {
        let (scale, words, pool) = (
            self.source.scale_factor,
            Distributions::static_default(),
            &*self.pool,
        );
        let behind = self.source.refreshed_orders() as i64 * i64::from(SETS_MAX);
        let new_key = |key| inserted_key(order_number(key) - behind);
        if self.source.table == TpchTable::Orders {
            let orders = OrderGenerator::new_with_distributions_and_text_pool(
                scale, part, parts, words, pool,
            );
            let inserted = orders.iter().map(|mut order| {
                order.o_orderkey = new_key(order.o_orderkey);
                order
            });
            write_lines(inserted, &mut self.text);
        } else {
            let items = LineItemGenerator::new_with_distributions_and_text_pool(
                scale, part, parts, words, pool,
            );
            let inserted = items.iter().map(|mut item| {
                item.l_orderkey = new_key(item.l_orderkey);
                item
            });
            write_lines(inserted, &mut self.text);
        }
    }
}

fn write_lines(rows: impl Iterator<Item = impl Display>, text: &mut String) {
    for row in rows {
        write!(text, "{row}").expect("writing to memory does not fail");
        let last = text.pop();
        debug_assert_eq!(last, Some(SEPARATOR), "the generator ends each field");
        text.push('\n');
    }
}

// The text that comments are cut from (TPC-H specification, clause 4.2.2.14).

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
pub fn release_text_pool() {
    *KEPT.lock().expect("no panic under the lock") = None;
}

// Tables as files, for engines that load files.

/// Write one of `parts` parts as lines of fields separated by `|`; returns the number of rows.
///
/// # Errors
/// If there is no such part, or the file cannot be written.
pub fn write_table_part(
    source: TpchRowSource,
    part: u32,
    parts: u32,
    path: &Path,
) -> Result<u64, TpchError> {
    let failed = |error| TpchError::Write {
        path: path.to_owned(),
        source: error,
    };
    let mut lines = source.lines(part, parts)?;
    let mut file = File::create(path).map_err(failed)?;
    let mut rows = 0;
    while let Some(text) = lines.next_text() {
        rows += text.bytes().filter(|&byte| byte == b'\n').count() as u64;
        file.write_all(text.as_bytes()).map_err(failed)?;
    }
    Ok(rows)
}
