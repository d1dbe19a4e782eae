//! Tables and refresh sets as the specification counts them.

use proptest::prelude::*;
use tierwise_tpch::{FieldKind, TpchRowSource, TpchTable};

fn all_lines(source: TpchRowSource, parts: u32) -> Vec<String> {
    let mut result = Vec::new();
    for part in 1..=parts {
        let mut lines = source.lines(part, parts).unwrap();
        while let Some(line) = lines.next_line() {
            result.push(line.to_owned());
        }
    }
    result
}

fn key(line: &str) -> i64 {
    line.split('|').next().unwrap().parse().unwrap()
}

#[test]
fn tables_have_the_rows_and_columns_they_declare() {
    for table in TpchTable::ALL {
        let source = TpchRowSource::table(table, 0.01).unwrap();
        let lines = all_lines(source, 3);
        if table == TpchTable::LineItem {
            assert_eq!(lines.len(), 60_175);
        } else {
            assert_eq!(lines.len() as u64, source.rows(), "{}", table.name());
        }
        for line in &lines {
            let fields: Vec<_> = line.split('|').collect();
            assert_eq!(fields.len(), table.columns().len(), "{line}");
            let wholes = table.columns().into_iter().zip(&fields);
            assert!(
                wholes
                    .filter(|(column, _)| column.kind == FieldKind::Whole)
                    .all(|(_, field)| field.parse::<i64>().is_ok()),
                "{line}"
            );
        }
    }
}

#[test]
fn rows_are_those_of_the_specifications_generator() {
    let lines = all_lines(TpchRowSource::table(TpchTable::LineItem, 0.01).unwrap(), 1);
    let without_comment = lines[0].rsplit_once('|').unwrap().0;
    assert_eq!(
        without_comment,
        "1|1552|93|1|17|24710.35|0.04|0.02|N|O|1996-03-13|1996-02-12|1996-03-22|DELIVER IN PERSON|TRUCK"
    );
}

#[test]
fn refresh_sets_insert_new_orders_with_their_items() {
    let orders = all_lines(
        TpchRowSource::refresh(TpchTable::Orders, 0.01, 3).unwrap(),
        1,
    );
    let items = all_lines(
        TpchRowSource::refresh(TpchTable::LineItem, 0.01, 3).unwrap(),
        1,
    );
    assert_eq!(orders.len(), 45);
    let order_keys: Vec<_> = orders.iter().map(|line| key(line)).collect();
    assert!(order_keys.iter().all(|key| (8..16).contains(&(key % 32))));
    let mut item_keys: Vec<_> = items.iter().map(|line| key(line)).collect();
    item_keys.dedup();
    assert_eq!(item_keys, order_keys);
    let source = TpchRowSource::refresh(TpchTable::Orders, 0.01, 3).unwrap();
    for set in 1..=3 {
        let range = source.refresh_keys(set).unwrap().inserted;
        assert_eq!(
            order_keys.iter().filter(|key| range.contains(key)).count(),
            15
        );
    }
}

#[test]
fn new_orders_cost_what_their_items_cost() {
    let order = &all_lines(
        TpchRowSource::refresh(TpchTable::Orders, 0.01, 1).unwrap(),
        1,
    )[0];
    let items = all_lines(
        TpchRowSource::refresh(TpchTable::LineItem, 0.01, 1).unwrap(),
        1,
    );
    let cents = |text: &str| text.replace('.', "").parse::<i64>().unwrap();
    let price: i64 = items
        .iter()
        .filter(|item| key(item) == key(order))
        .map(|item| {
            let fields: Vec<_> = item.split('|').collect();
            cents(fields[5]) * (100 - cents(fields[6])) / 100 * (100 + cents(fields[7])) / 100
        })
        .sum();
    assert_eq!(cents(order.split('|').nth(3).unwrap()), price);
}

#[test]
fn impossible_requests_are_refused() {
    assert!(TpchTable::named("order").is_err());
    assert!(TpchRowSource::table(TpchTable::Part, 0.0).is_err());
    assert!(TpchRowSource::table(TpchTable::Part, f64::NAN).is_err());
    assert!(TpchRowSource::refresh(TpchTable::Part, 1.0, 1).is_err());
    assert!(TpchRowSource::refresh(TpchTable::Orders, 1.0, 1001).is_err());
    assert!(
        TpchRowSource::table(TpchTable::Part, 1.0)
            .unwrap()
            .lines(0, 2)
            .is_err()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn parts_make_up_the_table_whatever_their_number(parts in 1u32..40) {
        let source = TpchRowSource::table(TpchTable::Customer, 0.02).unwrap();
        prop_assert_eq!(all_lines(source, parts), all_lines(source, 1));
    }

    #[test]
    fn what_a_pair_deletes_was_loaded(set in 1u32..=1000, scale_factor in 0.01f64..1.0) {
        let source = TpchRowSource::table(TpchTable::Orders, scale_factor).unwrap();
        let deleted = source.refresh_keys(set).unwrap().deleted;
        let loaded = deleted.clone().filter(|key| key % 32 < 8).count() as u64;
        prop_assert_eq!(loaded, source.refreshed_orders());
    }
}
