//! Runs of one transaction: checksums, caps, sequences that begin anew, labels.

use std::time::Duration;

use crate::noting::{Log, Noting, OUTCOME};
use proptest::prelude::*;
use tierwise_load::{
    ClientPool, ClientTask, DrawnValue, LoadError, LoadReport, ResolvedWorkload, RunControl,
    RunLimit, StatementFailure, WorkloadPlan, fill_tables,
};

const WORKLOAD: &str = r#"{
  "name": "test", "think_ms": 0, "tables": [
    {"name": "pilot", "rows": 30, "columns": [
      {"name": "name", "generator": {"kind": "label", "prefix": "Jonny_", "of": "id"}},
      {"name": "id", "generator": {"kind": "counter", "start": 1, "divide": 1, "modulo": null}}]}],
  "parameters": [
    {"name": "upper", "generator": {"kind": "label", "prefix": "Jonny_", "of": "i", "upper": true}},
    {"name": "i", "generator": {"kind": "sequence", "start": 1, "after": null, "global": false}},
    {"name": "g", "generator": {"kind": "sequence", "start": 1, "after": null, "global": true}},
    {"name": "next", "generator": {"kind": "sequence", "start": 1, "after": "greatest", "global": false}},
    {"name": "line", "generator": {"kind": "counter", "start": 1, "divide": 1, "modulo": null}},
    {"name": "of_line", "generator": {"kind": "label", "prefix": "l", "of": "line"}}],
  "transactions": [
    {"name": "read", "weight": 1, "autocommit": false, "steps": [
      {"repeat": 10, "draw": ["i"], "sql": ["get :i"], "sum": {"column": "points"}}]},
    {"name": "write", "weight": 1, "autocommit": false, "steps": [
      {"repeat": 10, "draw": ["i"], "sql": ["put :i :upper", "index :i"], "sum": {"parameter": "i"}}]},
    {"name": "count", "weight": 1, "autocommit": true, "steps": [
      {"repeat": 1, "draw": [], "sql": ["all"], "sum": "rows"}]},
    {"name": "number", "weight": 1, "autocommit": true, "steps": [
      {"repeat": 1, "draw": [], "sql": ["number :g :next"]}]},
    {"name": "lines", "weight": 1, "autocommit": true, "steps": [
      {"repeat": 3, "draw": [], "sql": ["line :of_line"]}]}]
}"#;

fn connect(engine: &Noting, clients: usize) -> ClientPool<Noting> {
    let plan = WorkloadPlan::new(&ResolvedWorkload::parse(WORKLOAD).unwrap()).unwrap();
    ClientPool::connect(engine.clone(), plan, clients, 1, &RunControl::default()).unwrap()
}

fn task(transaction: &str, count: u64) -> ClientTask<'_> {
    ClientTask {
        transaction: Some(transaction),
        ..ClientTask::mix(RunLimit::Transactions(count))
    }
}

fn lap(pool: &mut ClientPool<Noting>, transaction: &str, count: u64) -> LoadReport {
    let control = RunControl::default();
    pool.run(task(transaction, count), &control).unwrap()
}

/// The n-th argument of each statement that begins so.
fn arguments(log: &Log, statement: &str, number: usize) -> Vec<DrawnValue> {
    let asked = log.iter().filter(|(what, _)| what.starts_with(statement));
    asked.map(|(_, values)| values[number].clone()).collect()
}

fn integers(values: impl IntoIterator<Item = i64>) -> Vec<DrawnValue> {
    values.into_iter().map(DrawnValue::Int).collect()
}

#[test]
fn a_run_may_be_of_one_transaction() {
    let engine = Noting::new(|_, _| Ok(()));
    let report = lap(&mut connect(&engine, 3), "read", 7);
    assert_eq!((report.transactions, report.latency["read"].count), (7, 7));
    assert!(
        engine
            .logs()
            .concat()
            .iter()
            .all(|(what, _)| !what.starts_with("put"))
    );
    let unknown = connect(&engine, 1).run(task("nothing", 1), &RunControl::default());
    let LoadError::Workload(message) = unknown.unwrap_err() else {
        panic!("another kind of error")
    };
    assert!(message.contains("\"nothing\""), "{message}");
}

#[test]
fn a_step_adds_up_a_column_a_parameter_or_rows() {
    let engine = Noting::new(|_, _| Ok(()));
    let mut pool = connect(&engine, 1);
    let read = lap(&mut pool, "read", 4);
    assert_eq!(read.checksum, Some(40 * OUTCOME.sum));
    assert_eq!(read.rows, 40 * OUTCOME.rows);
    let write = lap(&mut pool, "write", 10);
    assert_eq!(
        write.checksum,
        Some(100 * 101 / 2),
        "once for each repetition"
    );
    assert_eq!(write.rows, 200 * OUTCOME.rows, "of both statements");
    assert_eq!(
        lap(&mut pool, "count", 3).checksum,
        Some(3 * OUTCOME.rows as i64)
    );
    assert_eq!(lap(&mut pool, "number", 3).checksum, None);
    let mix = ClientTask::mix(RunLimit::Transactions(1));
    assert!(
        pool.run(mix, &RunControl::default())
            .unwrap()
            .checksum
            .is_some()
    );
}

#[test]
fn what_is_tried_again_or_given_up_adds_nothing() {
    let engine = Noting::new(|_, calls| match calls {
        5 => Err(StatementFailure {
            retry: true,
            ..StatementFailure::new("deadlock")
        }),
        _ => Ok(()),
    });
    let report = lap(&mut connect(&engine, 1), "read", 1);
    assert_eq!((report.retries, report.rows), (1, 10 * OUTCOME.rows));
    let engine = Noting::new(|_, _| {
        Err(StatementFailure {
            retry: true,
            ..StatementFailure::new("deadlock")
        })
    });
    let report = lap(&mut connect(&engine, 1), "read", 1);
    assert_eq!(
        (report.errors, report.rows, report.checksum),
        (1, 0, Some(0))
    );
}

proptest! {
    #[test]
    fn each_lap_numbers_its_objects_from_the_start(first in 1_u64..20, second in 1_u64..20, again: bool) {
        let engine = Noting::new(|_, _| Ok(()));
        let mut pool = connect(&engine, 1);
        let all = |count: u64| integers(1..=10 * count as i64);
        lap(&mut pool, "write", first);
        prop_assert_eq!(arguments(&engine.logs().concat(), "put", 0), all(first));
        if again {
            pool.reconnect(&RunControl::default()).unwrap();
        }
        lap(&mut pool, "read", second);
        prop_assert_eq!(arguments(&engine.logs().concat(), "get", 0), all(second));
    }
}

#[test]
fn an_attempt_that_gave_way_leaves_no_gap() {
    let engine = Noting::new(|_, calls| match calls {
        15 => Err(StatementFailure {
            retry: true,
            ..StatementFailure::new("deadlock")
        }),
        _ => Ok(()),
    });
    let report = lap(&mut connect(&engine, 1), "read", 2);
    assert_eq!((report.transactions, report.retries), (2, 1));
    let drawn = arguments(&engine.logs().concat(), "get", 0);
    let expected = (1..=10).chain(11..=15).chain(11..=20);
    assert_eq!(drawn, integers(expected));
}

#[test]
fn sequences_of_all_clients_and_those_that_ask_go_on() {
    let engine = Noting::new(|_, _| Ok(()));
    let mut pool = connect(&engine, 1);
    lap(&mut pool, "number", 2);
    lap(&mut pool, "number", 2);
    let log = engine.logs().concat();
    assert_eq!(arguments(&log, "number", 0), integers(1..=4));
    assert_eq!(arguments(&log, "number", 1), integers(101..=104));
}

#[test]
fn a_label_follows_what_it_is_of() {
    let engine = Noting::new(|_, _| Ok(()));
    let mut pool = connect(&engine, 1);
    lap(&mut pool, "write", 2);
    let log = engine.logs().concat();
    let names: Vec<_> = (1..=20)
        .map(|i| DrawnValue::Text(format!("JONNY_{i}")))
        .collect();
    assert_eq!(arguments(&log, "put", 1), names);
    assert_eq!(arguments(&log, "put", 0), arguments(&log, "index", 0));
    lap(&mut pool, "lines", 1);
    let lines: Vec<_> = (1..=3).map(|i| DrawnValue::Text(format!("l{i}"))).collect();
    assert_eq!(arguments(&engine.logs().concat(), "line", 0), lines);
}

#[test]
fn columns_may_be_labels_of_later_columns() {
    let engine = Noting::new(|_, _| Ok(()));
    let control = RunControl::default();
    let workload = ResolvedWorkload::parse(WORKLOAD).unwrap();
    assert_eq!(fill_tables(&engine, &workload, 1, &control).unwrap(), 30);
    assert_eq!(control.done(), 30);
    for (number, (_, row)) in engine.logs().concat().iter().enumerate() {
        let name = DrawnValue::Text(format!("Jonny_{}", number + 1));
        assert_eq!(row[..], [name, DrawnValue::Int(number as i64 + 1)]);
    }
}

#[test]
fn what_is_made_of_nothing_or_of_itself_is_refused() {
    let refusal = |of: &str| {
        let found = WORKLOAD.replace(r#""prefix": "l", "of": "line""#, of);
        let plan = WorkloadPlan::new(&ResolvedWorkload::parse(&found).unwrap());
        plan.unwrap_err().to_string()
    };
    let nothing = refusal(r#""prefix": "l", "of": "no""#);
    assert!(
        nothing.contains("of_line") && nothing.contains("\"no\""),
        "{nothing}"
    );
    let itself = refusal(r#""prefix": "l", "of": "of_line""#);
    assert!(itself.contains("made of each other"), "{itself}");
}

#[test]
fn what_is_no_whole_number_is_not_added_up() {
    let label = WORKLOAD.replace(r#"{"parameter": "i"}"#, r#"{"parameter": "upper"}"#);
    let message = WorkloadPlan::new(&ResolvedWorkload::parse(&label).unwrap()).unwrap_err();
    assert!(
        message.to_string().contains("write: the sum of :upper"),
        "{message}"
    );
}

fn capped(
    engine: &Noting,
    clients: usize,
    limit: RunLimit,
    cap: Duration,
) -> (ClientPool<Noting>, LoadReport) {
    let mut pool = connect(engine, clients);
    let task = ClientTask {
        limit,
        cap: Some(cap),
        transaction: Some("read"),
    };
    let report = pool.run(task, &RunControl::default()).unwrap();
    (pool, report)
}

#[test]
fn a_statement_stopped_at_the_cap_ends_the_run_orderly() {
    let engine = Noting::new(|_, calls| match calls {
        25 => Err(StatementFailure::capped("stopped")),
        _ => Ok(()),
    });
    let hour = Duration::from_secs(3600);
    let (mut pool, report) = capped(&engine, 1, RunLimit::Transactions(100), hour);
    assert!(report.capped && report.transactions == 2);
    assert_eq!(
        report.checksum,
        Some(20 * OUTCOME.sum),
        "the third is undone"
    );
    let log = engine.logs().concat();
    let words: Vec<_> = log.iter().map(|(what, _)| what.as_str()).collect();
    assert_eq!(words[0], "cap");
    assert_eq!(words[words.len() - 2..], ["rollback", "no cap"]);
    assert!(!lap(&mut pool, "read", 1).capped, "the clients are usable");
}

#[test]
fn transactions_left_when_the_time_is_over_are_not_begun() {
    let engine = Noting::new(|_, _| {
        std::thread::sleep(Duration::from_millis(1));
        Ok(())
    });
    let limit = RunLimit::Transactions(1_000_000);
    let (_, report) = capped(&engine, 2, limit, Duration::from_millis(50));
    assert!(report.capped && report.transactions < 1_000_000);
    let log = engine.logs().concat();
    let said = |word: &str| log.iter().filter(|(what, _)| what == word).count();
    assert_eq!(said("commit") as u64, report.transactions);
    assert_eq!(said("begin"), said("commit") + said("rollback"));
}

#[test]
fn a_cap_that_is_not_reached_changes_nothing() {
    let engine = Noting::new(|_, _| Ok(()));
    let hour = Duration::from_secs(3600);
    let (_, report) = capped(&engine, 2, RunLimit::Transactions(10), hour);
    assert!(!report.capped && report.transactions == 10);
    let (_, report) = capped(&engine, 2, RunLimit::Time(Duration::from_millis(20)), hour);
    assert!(!report.capped);
}

#[test]
fn a_statement_that_the_engine_stops_without_a_cap_is_a_failure() {
    let engine = Noting::new(|_, _| Err(StatementFailure::capped("stopped by an operator")));
    let error = connect(&engine, 1).run(task("read", 1), &RunControl::default());
    assert!(error.unwrap_err().to_string().contains("operator"));
}

#[test]
fn closed_clients_say_so_and_can_be_connected_again() {
    let engine = Noting::new(|_, _| Ok(()));
    let mut pool = connect(&engine, 2);
    pool.close();
    let closed = pool.run(task("read", 1), &RunControl::default());
    assert_eq!(closed.unwrap_err(), LoadError::Disconnected);
    pool.reconnect(&RunControl::default()).unwrap();
    assert_eq!(lap(&mut pool, "read", 2).transactions, 2);
}
