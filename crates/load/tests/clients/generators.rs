//! Properties of generators: bounds, distributions, determinism by seed.

use proptest::prelude::*;
use tierwise_load::sql::{StatementTemplate, split_script};
use tierwise_load::{
    DrawingClient, DrawnValue, ExpressionTerm, GeneratorSpec, ValueGenerator, random_stream,
};

const ONE_CLIENT: DrawingClient = DrawingClient {
    seed: 1,
    client: 0,
    clients: 1,
};

fn draws(spec: &GeneratorSpec, seed: u64, count: u64) -> Vec<DrawnValue> {
    let context = DrawingClient { seed, ..ONE_CLIENT };
    let mut generator = ValueGenerator::new(spec, context, None, |_| None).expect("valid");
    let mut random = random_stream(seed, &[7]);
    (0..count)
        .map(|ordinal| {
            let mut values = [DrawnValue::Int(0)];
            generator.draw(&mut random, ordinal, &mut values, 0);
            let [value] = values;
            value
        })
        .collect()
}

fn numbers(spec: &GeneratorSpec, seed: u64, count: u64) -> Vec<i64> {
    draws(spec, seed, count)
        .iter()
        .map(|value| value.as_int().expect("a whole number"))
        .collect()
}

fn frequencies(low: i64, high: i64, numbers: &[i64]) -> Vec<usize> {
    (low..=high)
        .map(|wanted| numbers.iter().filter(|&&number| number == wanted).count())
        .collect()
}

fn any_spec() -> impl Strategy<Value = GeneratorSpec> {
    let range = || (-1000_i64..1000, 0_i64..100_000).prop_map(|(low, size)| (low, low + size));
    prop_oneof![
        range().prop_map(|(low, high)| GeneratorSpec::Uniform { low, high }),
        (range(), 0.0..3.0).prop_map(|((low, high), exponent)| GeneratorSpec::Zipf {
            low,
            high,
            exponent
        }),
        (range(), 2.0..9.0).prop_map(|((low, high), parameter)| GeneratorSpec::Gaussian {
            low,
            high,
            parameter
        }),
        (range(), 0.01..30.0).prop_map(|((low, high), parameter)| GeneratorSpec::Exponential {
            low,
            high,
            parameter
        }),
        (0_u32..16, 0_i64..1000, 0_i64..100_000).prop_map(|(bits, low, size)| {
            GeneratorSpec::Nurand {
                a: (1 << bits) - 1,
                low,
                high: low + size,
            }
        }),
    ]
}

proptest! {
    #[test]
    fn numbers_stay_within_bounds(spec in any_spec(), seed: u64) {
        let (low, high) = match spec {
            GeneratorSpec::Uniform { low, high }
            | GeneratorSpec::Zipf { low, high, .. }
            | GeneratorSpec::Gaussian { low, high, .. }
            | GeneratorSpec::Exponential { low, high, .. }
            | GeneratorSpec::Nurand { low, high, .. } => (low, high),
            _ => unreachable!(),
        };
        for number in numbers(&spec, seed, 200) {
            prop_assert!((low..=high).contains(&number), "{number} outside {low}..={high}");
        }
    }

    #[test]
    fn the_same_seed_draws_the_same(spec in any_spec(), seed: u64) {
        prop_assert_eq!(numbers(&spec, seed, 50), numbers(&spec, seed, 50));
    }

    #[test]
    fn sequences_of_all_clients_never_meet(start in -100_i64..100, clients in 1_u64..20, used in proptest::option::of(-200_i64..200)) {
        let spec = GeneratorSpec::Sequence { start, after: None, global: true };
        let mut seen = Vec::new();
        for client in 0..clients {
            let context = DrawingClient { seed: 1, client, clients };
            let mut generator = ValueGenerator::new(&spec, context, used, |_| None).expect("valid");
            let mut random = random_stream(1, &[]);
            for _ in 0..10 {
                let mut values = [DrawnValue::Int(0)];
                generator.draw(&mut random, 0, &mut values, 0);
                seen.push(values[0].as_int().expect("a whole number"));
            }
        }
        seen.sort_unstable();
        let first = used.map_or(start, |used| start.max(used + 1));
        prop_assert_eq!(seen, (first..first + 10 * clients as i64).collect::<Vec<_>>());
    }

    #[test]
    fn texts_have_the_length_asked_for(low in 0_u64..50, more in 0_u64..50, seed: u64) {
        for value in draws(&GeneratorSpec::Text { low, high: low + more }, seed, 20) {
            let DrawnValue::Text(text) = value else { panic!("not a text") };
            prop_assert!((low..=low + more).contains(&(text.chars().count() as u64)));
            prop_assert!(text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'));
        }
    }
}

#[test]
fn different_seeds_draw_differently() {
    let spec = GeneratorSpec::Uniform {
        low: 0,
        high: 1 << 40,
    };
    assert_ne!(numbers(&spec, 1, 5), numbers(&spec, 2, 5));
}

#[test]
fn uniform_draws_every_number_about_equally() {
    let drawn = numbers(&GeneratorSpec::Uniform { low: 3, high: 12 }, 5, 100_000);
    for frequency in frequencies(3, 12, &drawn) {
        assert!((9_500..10_500).contains(&frequency), "{frequency} of 10000");
    }
}

#[test]
fn a_bell_and_a_slope_have_the_frequencies_that_pgbench_states() {
    // Its documentation: of a bell of parameter p, 67 % lie in the middle 1/p and 95 % in the middle 2/p.
    let bell = GeneratorSpec::Gaussian {
        low: 1,
        high: 10_000,
        parameter: 4.0,
    };
    let near = |distance: i64| {
        let drawn = numbers(&bell, 5, 50_000).into_iter();
        drawn
            .filter(|value| (value - 5_000).abs() < distance)
            .count() as f64
            / 50_000.0
    };
    assert!((0.66..0.70).contains(&near(1_250)), "{}", near(1_250));
    assert!((0.94..0.965).contains(&near(2_500)), "{}", near(2_500));
    // Of a slope of parameter p, the k-th of n comes with exp(-p (k - 1) / n) of the first's frequency.
    let slope = GeneratorSpec::Exponential {
        low: 1,
        high: 10,
        parameter: 5.0,
    };
    let found = frequencies(1, 10, &numbers(&slope, 5, 200_000));
    let ratio = found[0] as f64 / found[4] as f64;
    assert!((7.0..7.8).contains(&ratio), "{ratio}, by the law 7.39");
}

#[test]
fn zipf_frequencies_fall_as_the_law_says() {
    let drawn = numbers(
        &GeneratorSpec::Zipf {
            low: 1,
            high: 8,
            exponent: 1.0,
        },
        5,
        200_000,
    );
    let found = frequencies(1, 8, &drawn);
    assert!(found.is_sorted_by(|more, less| more > less), "{found:?}");
    let ratio = found[0] as f64 / found[3] as f64;
    assert!(
        (3.8..4.2).contains(&ratio),
        "1st to 4th is {ratio}, by the law 4"
    );
}

#[test]
fn zipf_of_exponent_0_is_uniform() {
    let drawn = numbers(
        &GeneratorSpec::Zipf {
            low: 1,
            high: 4,
            exponent: 0.0,
        },
        5,
        40_000,
    );
    for frequency in frequencies(1, 4, &drawn) {
        assert!((9_500..10_500).contains(&frequency), "{frequency} of 10000");
    }
}

/// NURand ORs two numbers, so the mean number of one bits among the low ten is 7.5 and not 5.
#[test]
fn nurand_prefers_what_the_specification_says() {
    let spec = GeneratorSpec::Nurand {
        a: 1023,
        low: 0,
        high: (1 << 20) - 1,
    };
    let drawn = numbers(&spec, 9, 50_000);
    let ones = |c: i64| {
        let bits: u32 = drawn
            .iter()
            .map(|number| ((number - c).rem_euclid(1 << 20) & 1023).count_ones())
            .sum();
        f64::from(bits) / drawn.len() as f64
    };
    let best = (0..1024).map(ones).fold(0.0, f64::max);
    assert!(
        (7.45..7.55).contains(&best),
        "with the right C the mean is 7.5, not {best}"
    );
}

#[test]
fn counters_divide_and_start_again() {
    let lines = GeneratorSpec::Counter {
        start: 1,
        divide: 1,
        modulo: Some(3),
    };
    let orders = GeneratorSpec::Counter {
        start: 10,
        divide: 3,
        modulo: None,
    };
    assert_eq!(numbers(&lines, 1, 7), [1, 2, 3, 1, 2, 3, 1]);
    assert_eq!(numbers(&orders, 1, 7), [10, 10, 10, 11, 11, 11, 12]);
}

#[test]
fn uuids_are_of_version_4_and_differ() {
    let drawn = draws(&GeneratorSpec::Uuid, 1, 1000);
    for value in &drawn {
        let DrawnValue::Text(text) = value else {
            panic!("not a text")
        };
        let parts: Vec<_> = text.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12], "{text}");
        assert!(
            text[14..].starts_with('4') && "89ab".contains(&text[19..20]),
            "{text}"
        );
    }
    assert!(
        drawn
            .iter()
            .enumerate()
            .all(|(at, value)| !drawn[..at].contains(value))
    );
}

#[test]
fn choices_follow_their_weights() {
    let values = vec![DrawnValue::Text("often".to_owned()), DrawnValue::Float(0.5)];
    let spec = GeneratorSpec::Choice {
        values: values.clone(),
        weights: Some(vec![3.0, 1.0]),
    };
    let drawn = draws(&spec, 1, 40_000);
    let often = drawn.iter().filter(|&value| *value == values[0]).count();
    assert!((29_000..31_000).contains(&often), "{often} of 30000");
}

#[test]
fn impossible_generators_are_refused() {
    let refused = [
        GeneratorSpec::Uniform { low: 2, high: 1 },
        GeneratorSpec::Nurand {
            a: 1023,
            low: -1,
            high: 10,
        },
        GeneratorSpec::Counter {
            start: 1,
            divide: 0,
            modulo: None,
        },
        GeneratorSpec::Text { low: 2, high: 1 },
        GeneratorSpec::Choice {
            values: vec![],
            weights: None,
        },
    ];
    for spec in refused {
        assert!(
            ValueGenerator::new(&spec, ONE_CLIENT, None, |_| None).is_err(),
            "{spec:?}"
        );
    }
}

// Permutations and expressions: values that are made of what others drew.

/// What a generator makes of a value that stands before it.
fn made_of(spec: &GeneratorSpec, seed: u64, source: i64) -> Result<i64, String> {
    let context = DrawingClient {
        seed,
        client: 3,
        clients: 5,
    };
    let position = |name: &str| (name == "source").then_some(0);
    let mut generator = ValueGenerator::new(spec, context, None, position)?;
    let mut values = [DrawnValue::Int(source), DrawnValue::Int(0)];
    generator.draw(&mut random_stream(seed, &[]), 0, &mut values, 1);
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
    let postfix: Vec<ExpressionTerm> = serde_json::from_str(json).expect("terms");
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

// Where statements end and parameters are.

fn dollars(sql: &str) -> String {
    StatementTemplate::parse(sql).render(|index| format!("${}", index + 1))
}

#[test]
fn a_parameter_used_twice_is_one_parameter() {
    let template = StatementTemplate::parse("UPDATE t SET a = a + :by, b = b - :by WHERE id = :id");
    assert_eq!(template.names(), ["by", "id"]);
    assert_eq!(template.places().collect::<Vec<_>>(), [0, 0, 1]);
    assert_eq!(
        dollars("SET a = a + :by, b = b - :by WHERE id = :id"),
        "SET a = a + $1, b = b - $1 WHERE id = $2"
    );
}

#[test]
fn what_only_looks_like_a_parameter_is_left_alone() {
    for sql in [
        "SELECT ':no', \":no\" FROM t",
        "SELECT a::text, b[1:2] FROM t",
        "SELECT 1 -- :no",
        "SELECT /* :no */ 1",
        "SELECT $$ :no $$, $tag$ :no $tag$, $1",
        "SELECT 'it''s :no'",
        "SELECT 'unfinished :no",
        "SELECT 'é:no', 5 : 2",
    ] {
        assert_eq!(dollars(sql), sql);
        assert!(StatementTemplate::parse(sql).names().is_empty(), "{sql}");
    }
}

#[test]
fn a_parameter_may_follow_anything() {
    assert_eq!(dollars("(:a,:b)-:c/:d||:é:e"), "($1,$2)-$3/$4||:é$5");
}

#[test]
fn scripts_split_at_semicolons_outside_quotes() {
    let script = "-- first; not\nCREATE TABLE a (b text DEFAULT ';');\n\nINSERT INTO a VALUES (:x);;\n-- end";
    let statements = split_script(script);
    assert_eq!(statements.len(), 2);
    assert!(statements[0].ends_with("DEFAULT ';')"));
    assert_eq!(statements[1], "INSERT INTO a VALUES (:x)");
}

#[test]
fn a_backslash_escapes_a_quote_only_in_an_escape_string() {
    let statements =
        split_script(r"SELECT E'it\'s; :no \\', :x; SELECT 'a\'; SELECT some'b\'; SELECT (e'\';')");
    let expected = [
        r"SELECT E'it\'s; :no \\', :x",
        r"SELECT 'a\'",
        r"SELECT some'b\'",
        r"SELECT (e'\';')",
    ];
    assert_eq!(statements, expected);
    assert_eq!(StatementTemplate::parse(&statements[0]).names(), ["x"]);
}

proptest! {
    #[test]
    fn any_text_is_kept_but_for_its_parameters(sql in "[a-z:;'\"$ /*\\-é\n]{0,60}") {
        let template = StatementTemplate::parse(&sql);
        let names = template.names().to_vec();
        prop_assert_eq!(template.render(|index| format!(":{}", names[index])), sql);
    }
}
