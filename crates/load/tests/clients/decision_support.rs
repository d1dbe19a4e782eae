//! Tables of the TPC-H-derived decision support, against an engine that only notes its rows.

use crate::noting::{Log, Noting};
use tierwise_load::{Control, LoadError, Value, Workload, fill};

fn filled(source: &str) -> Result<(u64, Vec<Log>), LoadError> {
    let json = format!(
        r#"{{"name": "dss", "think_ms": 0, "parameters": [], "transactions": [],
            "tables": [{{"name": "t", "source": {{"kind": "tpch", {source}}}}}]}}"#
    );
    let engine = Noting::new(|_, _| Ok(()));
    let rows = fill(&engine, &Workload::parse(&json)?, 1, &Control::default())?;
    Ok((rows, engine.logs()))
}

#[test]
fn rows_come_with_whole_numbers_as_such_and_all_else_as_text() {
    let (rows, logs) = filled(r#""table": "nation", "scale_factor": 0.01"#).unwrap();
    assert_eq!(rows, 25);
    let (_, brazil) = &logs[0][2];
    let expected = [
        Value::Int(2),
        Value::Text("BRAZIL".to_owned()),
        Value::Int(1),
    ];
    assert_eq!(brazil[..3], expected);
}

#[test]
fn a_refresh_set_is_a_thousandth() {
    let orders = r#""table": "orders", "scale_factor": 0.01"#;
    assert_eq!(filled(orders).unwrap().0, 15_000);
    let refreshed = format!(r#"{orders}, "refresh_sets": 2"#);
    assert_eq!(filled(&refreshed).unwrap().0, 30);
}

#[test]
fn what_there_is_not_is_refused_by_name() {
    let refusal = |source| filled(source).err().unwrap().to_string();
    assert!(refusal(r#""table": "order", "scale_factor": 1"#).contains("tables.t.source: unknown"));
    assert!(refusal(r#""table": "part", "scale_factor": 1, "refresh_sets": 1"#).contains("part"));
}
