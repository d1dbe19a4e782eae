//! The eight tables, their columns and sizes (TPC-H specification, clauses 1.4.1 and 4.2.5).

use crate::error::TpchError;

pub(crate) const SCALE_FACTOR_MIN: f64 = 0.001;
pub(crate) const SCALE_FACTOR_MAX: f64 = 1000.0;

/// One of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
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
pub struct Column {
    /// Name, as the specification has it.
    pub name: &'static str,
    /// The type of its text.
    pub kind: Kind,
}

/// The type of a field's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number.
    Whole,
    /// Text, a date (`1995-03-15`) or a decimal number with two places.
    Text,
}

impl Table {
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
    pub fn columns(self) -> Vec<Column> {
        let kind = |letter| match letter {
            "#" => Kind::Whole,
            _ => Kind::Text,
        };
        let column = |marked: &'static str| {
            let (letter, name) = marked.split_at(1);
            Column {
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
