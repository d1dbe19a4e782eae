//! Rows as lines of text, made a batch at a time.

use std::fmt::{Display, Write};
use std::ops::Range;
use std::sync::Arc;

use tpchgen::distribution::Distributions;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};
use tpchgen::text::TextPool;

use crate::keys::{SETS_MAX, inserted_key, order_number};
use crate::pool::text_pool;
use crate::source::Source;
use crate::table::Table;

/// Separates the fields of a line; no field holds one.
const SEPARATOR: char = '|';

/// The lines of some batches of a table.
pub struct Lines {
    source: Source,
    pool: Arc<TextPool>,
    batches: Range<u32>,
    text: String,
    read: usize,
}

impl Lines {
    pub(crate) fn new(source: Source, batches: Range<u32>) -> Self {
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
            Table::Region => write_lines(
                RegionGenerator::new_with_distributions_and_text_pool(words, pool).iter(),
                &mut self.text,
            ),
            Table::Nation => write_lines(
                NationGenerator::new_with_distributions_and_text_pool(words, pool).iter(),
                &mut self.text,
            ),
            Table::PartSupp => write_lines(
                PartSuppGenerator::new_with_text_pool(scale, part, parts, pool).iter(),
                &mut self.text,
            ),
            Table::Supplier => write_rows!(SupplierGenerator),
            Table::Customer => write_rows!(CustomerGenerator),
            Table::Part => write_rows!(PartGenerator),
            Table::Orders => write_rows!(OrderGenerator),
            Table::LineItem => write_rows!(LineItemGenerator),
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
        if self.source.table == Table::Orders {
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
