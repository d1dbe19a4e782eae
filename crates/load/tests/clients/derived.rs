//! Permutations and expressions: values that are made of what others drew.

use proptest::prelude::*;
use tierwise_load::{Context, Generator, GeneratorSpec, Term, Value, random};

/// What a generator makes of a value that stands before it.
fn made_of(spec: &GeneratorSpec, seed: u64, source: i64) -> Result<i64, String> {
    let context = Context {
        seed,
        client: 3,
        clients: 5,
    };
    let position = |name: &str| (name == "source").then_some(0);
    let mut generator = Generator::new(spec, context, None, position)?;
    let mut values = [Value::Int(source), Value::Int(0)];
    generator.draw(&mut random(seed, &[]), 0, &mut values, 1);
    Ok(values[1].as_int().expect("a whole number"))
}

fn permutation(low: i64, high: i64) -> GeneratorSpec {
    GeneratorSpec::Permutation {
        of: "source".to_owned(),
        low,
        high,
    }
}

fn expression(json: &str) -> GeneratorSpec {
    let postfix: Vec<Term> = serde_json::from_str(json).expect("terms");
    GeneratorSpec::Expression { postfix }
}

proptest! {
    #[test]
    fn a_permutation_gives_each_number_once(low in -50_i64..50, size in 1_i64..300, first in -400_i64..400, seed: u64) {
        let spec = permutation(low, low + size - 1);
        let mut numbers: Vec<_> = (first..first + size)
            .map(|place| made_of(&spec, seed, place).expect("valid"))
            .collect();
        numbers.sort_unstable();
        prop_assert_eq!(numbers, (low..low + size).collect::<Vec<_>>());
    }
}

#[test]
fn a_permutation_leaves_no_neighbours_together() {
    let spec = permutation(1, 10_000);
    let numbers: Vec<_> = (1..=10_000)
        .map(|place| made_of(&spec, 7, place).expect("valid"))
        .collect();
    let near = numbers
        .windows(2)
        .filter(|two| two[0].abs_diff(two[1]) < 100);
    let share = near.count() as f64 / 10_000.0;
    assert!((0.01..0.03).contains(&share), "{share}, by chance 0.02");
    assert!(made_of(&permutation(2, 1), 7, 1).is_err());
}

#[test]
fn an_expression_is_evaluated_in_order() {
    let terms = r#"[{"value": "source"}, {"number": 10}, "remainder", {"number": 2}, "multiply", "client", "add"]"#;
    assert_eq!(made_of(&expression(terms), 1, 47), Ok(17));
    let lesser = r#"[{"value": "source"}, "absolute", {"number": 5}, "least", "negate"]"#;
    assert_eq!(made_of(&expression(lesser), 1, -9), Ok(-5));
    let by_nothing = r#"[{"number": 8}, {"value": "source"}, "divide"]"#;
    assert_eq!(made_of(&expression(by_nothing), 1, 3), Ok(2));
    assert_eq!(made_of(&expression(by_nothing), 1, 0), Ok(0));
}

#[test]
fn terms_that_do_not_leave_one_number_are_refused() {
    for terms in [
        "[]",
        r#"["add"]"#,
        r#"["negate"]"#,
        r#"[{"number": 1}, {"number": 2}]"#,
        r#"[{"number": 1}, "add"]"#,
        r#"[{"value": "no"}]"#,
    ] {
        assert!(made_of(&expression(terms), 1, 1).is_err(), "{terms}");
    }
}
