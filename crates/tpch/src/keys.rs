//! Keys of orders: of each 32 numbers the first 8 are loaded, and refresh sets insert the next ones (TPC-H
//! specification, clause 4.2.3, O_ORDERKEY; dbgen's `mk_sparse`).

use std::ops::RangeInclusive;

use tpchgen::generators::OrderGenerator;

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
