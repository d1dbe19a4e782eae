//! The eight tables, their columns and sizes (TPC-H specification, clauses 1.4.1 and 4.2.5).

use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use thiserror::Error;
use tpchgen::generators::OrderGenerator;

use crate::TableLines;

pub(crate) const SCALE_FACTOR_MIN: f64 = 0.001;
pub(crate) const SCALE_FACTOR_MAX: f64 = 1000.0;

/// One of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TpchTable {
    /// 5 rows.
    Region,
    /// 25 rows.
    Nation,
    /// 10,000 rows a scale factor.
    Supplier,
    /// 150,000 rows a scale factor.
    Customer,
    /// 200,000 rows a scale factor.
    Part,
    /// 4 rows a part.
    PartSupp,
    /// 1,500,000 rows a scale factor.
    Orders,
    /// 1 to 7 rows an order.
    LineItem,
}

/// A column, in the order of the text's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TpchColumn {
    /// Name, as the specification has it.
    pub name: &'static str,
    /// The type of its text.
    pub kind: FieldKind,
}

/// The type of a field's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A whole number.
    Whole,
    /// Text, a date (`1995-03-15`) or a decimal number with two places.
    Text,
}

impl TpchTable {
    /// Every table, those that others refer to first.
    pub const ALL: [Self; 8] = [
        Self::Region,
        Self::Nation,
        Self::Supplier,
        Self::Customer,
        Self::Part,
        Self::PartSupp,
        Self::Orders,
        Self::LineItem,
    ];

    /// The table of that name.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(name: &str) -> Result<Self, TpchError> {
        let found = Self::ALL.into_iter().find(|table| table.name() == name);
        found.ok_or_else(|| TpchError::UnknownTable {
            name: name.to_owned(),
        })
    }

    /// Its name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Region => "region",
            Self::Nation => "nation",
            Self::Supplier => "supplier",
            Self::Customer => "customer",
            Self::Part => "part",
            Self::PartSupp => "partsupp",
            Self::Orders => "orders",
            Self::LineItem => "lineitem",
        }
    }

    /// Its columns in order.
    pub fn columns(self) -> Vec<TpchColumn> {
        let kind = |letter| match letter {
            "#" => FieldKind::Whole,
            _ => FieldKind::Text,
        };
        let column = |marked: &'static str| {
            let (letter, name) = marked.split_at(1);
            TpchColumn {
                name,
                kind: kind(letter),
            }
        };
        self.marked_columns().split(' ').map(column).collect()
    }

    /// Names of the columns; `#` marks whole numbers, `:` the others.
    fn marked_columns(self) -> &'static str {
        match self {
            Self::Region => "#r_regionkey :r_name :r_comment",
            Self::Nation => "#n_nationkey :n_name #n_regionkey :n_comment",
            Self::Supplier => {
                "#s_suppkey :s_name :s_address #s_nationkey :s_phone :s_acctbal :s_comment"
            }
            Self::Customer => {
                "#c_custkey :c_name :c_address #c_nationkey :c_phone :c_acctbal :c_mktsegment :c_comment"
            }
            Self::Part => {
                "#p_partkey :p_name :p_mfgr :p_brand :p_type #p_size :p_container :p_retailprice :p_comment"
            }
            Self::PartSupp => "#ps_partkey #ps_suppkey #ps_availqty :ps_supplycost :ps_comment",
            Self::Orders => {
                "#o_orderkey #o_custkey :o_orderstatus :o_totalprice :o_orderdate :o_orderpriority :o_clerk \
                 #o_shippriority :o_comment"
            }
            Self::LineItem => {
                "#l_orderkey #l_partkey #l_suppkey #l_linenumber #l_quantity :l_extendedprice :l_discount \
                 :l_tax :l_returnflag :l_linestatus :l_shipdate :l_commitdate :l_receiptdate :l_shipinstruct \
                 :l_shipmode :l_comment"
            }
        }
    }

    /// Rows that the generator counts by: parts for partsupp, orders for lineitem, else the table's own.
    pub(crate) fn counted_rows(self, scale_factor: f64) -> u64 {
        let base = match self {
            Self::Region => return 5,
            Self::Nation => return 25,
            Self::Supplier => 10_000.0,
            Self::Customer => 150_000.0,
            Self::Part | Self::PartSupp => 200_000.0,
            Self::Orders | Self::LineItem => 1_500_000.0,
        };
        (base * scale_factor) as u64
    }

    /// Rows of the table for each that the generator counts by, in the mean.
    pub(crate) fn rows_each(self) -> u64 {
        match self {
            Self::PartSupp | Self::LineItem => 4,
            _ => 1,
        }
    }
}

// Keys of orders: of each 32 numbers the first 8 are loaded, and refresh sets insert the next ones (TPC-H
// specification, clause 4.2.3, O_ORDERKEY; dbgen's `mk_sparse`).

/// Refresh sets until every order that was loaded has been deleted: each replaces a thousandth.
pub const SETS_MAX: u32 = 1000;

/// Distance between the loaded keys and those of the refresh sets.
const SHIFT: i64 = 8;

/// The keys that one refresh pair inserts and deletes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefreshKeys {
    /// From the first to the last new order: those of its numbers whose remainder by 32 is 8 to 15.
    pub inserted: RangeInclusive<i64>,
    /// From the first to the last old order: those of its numbers whose remainder by 32 is 0 to 7.
    pub deleted: RangeInclusive<i64>,
}

impl RefreshKeys {
    /// Keys of the pair `set`, counted from 1, of `orders` orders each.
    pub(crate) fn new(set: u32, orders: u64) -> Self {
        let before = i64::from(set - 1) * orders as i64;
        let first = OrderGenerator::make_order_key(before + 1);
        let last = OrderGenerator::make_order_key(before + orders as i64);
        Self {
            inserted: first + SHIFT..=last + SHIFT,
            deleted: first..=last,
        }
    }
}

/// Key of the `number`-th order that refresh sets insert, counted from 1 over all sets.
pub(crate) fn inserted_key(number: i64) -> i64 {
    OrderGenerator::make_order_key(number) + SHIFT
}

/// Number, from 1, of the order that has this key among those loaded.
pub(crate) fn order_number(key: i64) -> i64 {
    ((key >> 5) << 3) | (key & 7)
}

// A request for rows: a table, or its refresh sets, at one size.

/// Rows that the generator counts by and makes at a time: half a megabyte of text.
const BATCH_ROWS: u64 = 1000;

/// A table at one scale factor, or the rows that refresh sets will insert into it.
#[derive(Clone, Copy, Debug)]
pub struct TpchRowSource {
    pub(crate) table: TpchTable,
    pub(crate) scale_factor: f64,
    pub(crate) refresh_sets: Option<u32>,
}

impl TpchRowSource {
    /// The rows that are loaded.
    ///
    /// # Errors
    /// If the scale factor is not between 0.001 and 1000.
    pub fn table(table: TpchTable, scale_factor: f64) -> Result<Self, TpchError> {
        if !(SCALE_FACTOR_MIN..=SCALE_FACTOR_MAX).contains(&scale_factor) {
            return Err(TpchError::ScaleFactor(scale_factor));
        }
        Ok(Self {
            table,
            scale_factor,
            refresh_sets: None,
        })
    }

    /// The rows that the first `sets` refresh sets insert.
    ///
    /// # Errors
    /// If the table is not refreshed, or not that often.
    pub fn refresh(table: TpchTable, scale_factor: f64, sets: u32) -> Result<Self, TpchError> {
        let source = Self::table(table, scale_factor)?;
        if !matches!(table, TpchTable::Orders | TpchTable::LineItem) {
            return Err(TpchError::NotRefreshed(table));
        }
        if !(1..=SETS_MAX).contains(&sets) {
            return Err(TpchError::Sets(sets));
        }
        Ok(Self {
            refresh_sets: Some(sets),
            ..source
        })
    }

    /// Which table.
    pub fn of(&self) -> TpchTable {
        self.table
    }

    /// Number of rows; about that of lineitem, whose orders have 1 to 7.
    pub fn rows(&self) -> u64 {
        let counted = match self.refresh_sets {
            None => self.table.counted_rows(self.scale_factor),
            Some(sets) => u64::from(sets) * self.refreshed_orders(),
        };
        counted * self.table.rows_each()
    }

    /// Orders that each refresh set inserts and deletes: 1500 a scale factor (clause 2.5.2).
    pub fn refreshed_orders(&self) -> u64 {
        TpchTable::Orders.counted_rows(self.scale_factor) / u64::from(SETS_MAX)
    }

    /// The keys that the refresh pair `set`, counted from 1, inserts and deletes.
    ///
    /// # Errors
    /// If there is no such pair.
    pub fn refresh_keys(&self, set: u32) -> Result<RefreshKeys, TpchError> {
        if !(1..=SETS_MAX).contains(&set) {
            return Err(TpchError::Sets(set));
        }
        Ok(RefreshKeys::new(set, self.refreshed_orders()))
    }

    /// The text of one of `parts` parts; all parts together are the table, whatever their number.
    ///
    /// # Errors
    /// If there is no such part.
    pub fn lines(&self, part: u32, parts: u32) -> Result<TableLines, TpchError> {
        if !(1..=parts).contains(&part) {
            return Err(TpchError::Part { part, parts });
        }
        let batches = self.batches();
        let bound = |part: u32| (u64::from(batches) * u64::from(part) / u64::from(parts)) as u32;
        Ok(TableLines::new(*self, bound(part - 1)..bound(part)))
    }

    /// Pieces that rows are made in.
    pub(crate) fn batches(&self) -> u32 {
        let batches = match (self.refresh_sets, self.table) {
            (Some(sets), _) => u64::from(sets),
            (None, TpchTable::Region | TpchTable::Nation) => 1,
            (None, table) => table.counted_rows(self.scale_factor).div_ceil(BATCH_ROWS),
        };
        batches.max(1) as u32
    }
}

// Errors in a request for rows.

/// Why there are no rows.
#[derive(Debug, Error)]
pub enum TpchError {
    /// No such table.
    #[error("unknown table {name:?}; use one of {}", known_tables())]
    UnknownTable {
        /// As it was given.
        name: String,
    },
    /// The tables make no sense at that size.
    #[error("scale factor {0} is not between {SCALE_FACTOR_MIN} and {SCALE_FACTOR_MAX}")]
    ScaleFactor(f64),
    /// Only orders and their items are refreshed.
    #[error("table {} has no refresh sets; orders and lineitem have", .0.name())]
    NotRefreshed(TpchTable),
    /// There are no orders left to delete.
    #[error("{0} refresh sets are more than {SETS_MAX}, after which all first orders are gone")]
    Sets(u32),
    /// A piece that is not there.
    #[error("part {part} of {parts}: parts are numbered from 1")]
    Part {
        /// Asked for.
        part: u32,
        /// There are.
        parts: u32,
    },
    /// A file could not be written.
    #[error("{path}: {source}")]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

fn known_tables() -> String {
    let names: Vec<_> = TpchTable::ALL.iter().map(|table| table.name()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_32_keys_the_first_8_are_loaded_and_the_next_8_inserted() {
        let loaded: Vec<_> = (1..=17).map(OrderGenerator::make_order_key).collect();
        let expected = [1, 2, 3, 4, 5, 6, 7, 32, 33, 34, 35, 36, 37, 38, 39, 64, 65];
        assert_eq!(loaded, expected);
        let inserted: Vec<_> = (1..=9).map(inserted_key).collect();
        assert_eq!(inserted, [9, 10, 11, 12, 13, 14, 15, 40, 41]);
        assert!((1..5000).all(|n| order_number(OrderGenerator::make_order_key(n)) == n));
    }

    #[test]
    fn pairs_of_1500_orders_follow_one_another() {
        let (first, second) = (RefreshKeys::new(1, 1500), RefreshKeys::new(2, 1500));
        assert_eq!(first.deleted, 1..=5988);
        assert_eq!(second.deleted, 5989..=12_000);
        assert_eq!(second.inserted, 5997..=12_008);
    }
}
