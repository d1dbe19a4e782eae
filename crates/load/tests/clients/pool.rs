//! Clients against an engine that only notes what it is asked.

use std::time::{Duration, Instant};

use tierwise_load::{
    ClientPool, ClientTask, DrawnValue, LoadError, LoadReport, ResolvedWorkload, RunControl,
    RunLimit, StatementFailure, WorkloadPlan, fill_tables,
};

use crate::noting::{Log, Noting};

const WORKLOAD: &str = r#"{
  "name": "test", "think_ms": 0, "tables": [
    {"name": "t", "rows": 2500, "columns": [
      {"name": "id", "generator": {"kind": "counter", "start": 1, "divide": 1, "modulo": null}},
      {"name": "x", "generator": {"kind": "uniform", "low": 1, "high": 1000000}}]}],
  "parameters": [
    {"name": "a", "generator": {"kind": "uniform", "low": 1, "high": 1000000}},
    {"name": "b", "generator": {"kind": "uniform", "low": 1, "high": 1000000}},
    {"name": "n", "generator": {"kind": "choice", "values": [3], "weights": null}},
    {"name": "line", "generator": {"kind": "counter", "start": 1, "divide": 1, "modulo": null}},
    {"name": "s", "generator": {"kind": "sequence", "start": 1, "after": "greatest", "global": true}}],
  "transactions": [
    {"name": "one", "weight": 1, "autocommit": false, "steps": [
      {"repeat": 1, "draw": [], "sql": ["first :a :s"]},
      {"repeat": "n", "draw": ["b"], "sql": ["line :a :line :b", "again :b"]}]},
    {"name": "two", "weight": 1, "autocommit": true, "steps": [
      {"repeat": 1, "draw": [], "sql": ["only :a"]}]}]
}"#;

fn connect(engine: &Noting, clients: usize, seed: u64) -> ClientPool<Noting> {
    let plan = WorkloadPlan::new(&ResolvedWorkload::parse(WORKLOAD).unwrap()).unwrap();
    ClientPool::connect(engine.clone(), plan, clients, seed, &RunControl::default()).unwrap()
}

fn run(
    engine: &Noting,
    clients: usize,
    seed: u64,
    transactions: u64,
) -> Result<LoadReport, LoadError> {
    connect(engine, clients, seed).run(
        ClientTask::mix(RunLimit::Transactions(transactions)),
        &RunControl::default(),
    )
}

fn deadlock() -> StatementFailure {
    StatementFailure {
        retry: true,
        ..StatementFailure::new("deadlock")
    }
}

fn transactions_in(log: &Log) -> usize {
    log.iter()
        .filter(|(what, _)| what == "commit" || what.starts_with("only"))
        .count()
}

#[test]
fn a_fixed_number_is_shared_out_equally() {
    let engine = Noting::new(|_, _| Ok(()));
    let report = run(&engine, 3, 1, 100).unwrap();
    let mut shares: Vec<_> = engine.logs().iter().map(transactions_in).collect();
    shares.sort_unstable();
    assert_eq!(shares, [33, 33, 34]);
    assert_eq!(
        (report.transactions, report.errors, report.retries),
        (100, 0, 0)
    );
    assert_eq!(
        report.latency["all"].count,
        report.latency["one"].count + report.latency["two"].count
    );
}

#[test]
fn many_clients_on_several_threads_do_the_same_work() {
    let engine = Noting::new(|_, _| Ok(()));
    assert_eq!(run(&engine, 200, 1, 1000).unwrap().transactions, 1000);
    assert!(engine.logs().iter().all(|log| transactions_in(log) == 5));
}

#[test]
fn work_depends_on_the_seed_and_not_on_the_warm_up() {
    let measured = |seed, warm_up| {
        let engine = Noting::new(|_, _| Ok(()));
        let mut pool = connect(&engine, 2, seed);
        pool.run(
            ClientTask::mix(RunLimit::Transactions(warm_up)),
            &RunControl::default(),
        )
        .unwrap();
        engine.logs();
        pool.run(
            ClientTask::mix(RunLimit::Transactions(20)),
            &RunControl::default(),
        )
        .unwrap();
        // Sequences alone go on from where the warm-up left them.
        let rest = |log: Log| {
            log.into_iter()
                .filter(|(what, _)| !what.starts_with("first"))
                .collect::<Vec<_>>()
        };
        engine.logs().into_iter().map(rest).collect::<Vec<_>>()
    };
    assert_eq!(measured(1, 10), measured(1, 40));
    assert_ne!(measured(1, 10), measured(2, 10));
}

#[test]
fn parameters_are_drawn_once_unless_the_step_says_otherwise() {
    let engine = Noting::new(|_, _| Ok(()));
    run(&engine, 1, 3, 50).unwrap();
    let log = engine.logs().remove(0);
    let start = log.iter().position(|(what, _)| what == "begin").unwrap();
    let words: Vec<_> = log[start..start + 9]
        .iter()
        .map(|(what, _)| what.as_str())
        .collect();
    let pair = ["line ?0 ?1 ?2", "again ?0"];
    assert_eq!(
        words,
        [
            "begin",
            "first ?0 ?1",
            pair[0],
            pair[1],
            pair[0],
            pair[1],
            pair[0],
            pair[1],
            "commit"
        ]
    );
    let arguments = |at: usize| &log[start + at].1;
    for repetition in 0..3 {
        let line = arguments(2 + 2 * repetition);
        assert_eq!(line[0], arguments(1)[0], ":a is drawn once");
        assert_eq!(
            line[1],
            DrawnValue::Int(repetition as i64 + 1),
            ":line counts"
        );
        assert_eq!(
            line[2],
            arguments(3 + 2 * repetition)[0],
            ":b is the same within a repetition"
        );
    }
    assert_ne!(arguments(2)[2], arguments(4)[2], ":b is drawn anew");
}

#[test]
fn sequences_go_on_after_what_is_in_use() {
    let engine = Noting::new(|_, _| Ok(()));
    run(&engine, 2, 1, 40).unwrap();
    let logs = engine.logs();
    let firsts = logs
        .iter()
        .flatten()
        .filter(|(what, _)| what.starts_with("first"));
    let mut numbers: Vec<_> = firsts
        .map(|(_, arguments)| arguments[1].as_int().unwrap())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers[0], 101);
    assert!(numbers.is_sorted_by(|a, b| a < b), "no number twice");
}

#[test]
fn a_transaction_that_gives_way_is_tried_again_with_the_same_parameters() {
    let engine = Noting::new(|_, calls| match calls {
        1 => Err(deadlock()),
        _ => Ok(()),
    });
    let report = run(&engine, 1, 1, 1).unwrap();
    assert_eq!(
        (report.transactions, report.retries, report.errors),
        (1, 1, 0)
    );
    let log = engine.logs().remove(0);
    let executed: Vec<_> = log.iter().filter(|(what, _)| what.contains('?')).collect();
    assert_eq!(
        (&executed[0].0, &executed[0].1[0]),
        (&executed[1].0, &executed[1].1[0])
    );
    let rollbacks = log.iter().filter(|(what, _)| what == "rollback").count();
    assert_eq!(rollbacks, usize::from(log[0].0 == "begin"));
}

#[test]
fn a_transaction_that_always_gives_way_is_an_error_in_the_end() {
    let engine = Noting::new(|_, _| Err(deadlock()));
    let report = run(&engine, 1, 1, 2).unwrap();
    assert_eq!((report.transactions, report.errors), (0, 2));
}

#[test]
fn any_other_failure_ends_the_run_and_names_the_statement() {
    let engine = Noting::new(|client, calls| match (client, calls) {
        (1, 5) => Err(StatementFailure::new("no such table")),
        _ => Ok(()),
    });
    let mut pool = connect(&engine, 4, 1);
    let error = pool
        .run(
            ClientTask::mix(RunLimit::Transactions(1_000_000)),
            &RunControl::default(),
        )
        .unwrap_err();
    assert!(
        matches!(&error, LoadError::Statement { message, .. } if message == "no such table"),
        "{error}"
    );
    assert!(
        error.to_string().contains(":a") || error.to_string().contains(":b"),
        "{error}"
    );
    let again = pool
        .run(
            ClientTask::mix(RunLimit::Transactions(1)),
            &RunControl::default(),
        )
        .unwrap_err();
    assert_eq!(again, LoadError::Disconnected);
}

#[test]
fn a_run_of_fixed_time_ends_in_time() {
    let engine = Noting::new(|_, _| Ok(()));
    let time = Duration::from_millis(300);
    let report = connect(&engine, 2, 1)
        .run(
            ClientTask::mix(RunLimit::Time(time)),
            &RunControl::default(),
        )
        .unwrap();
    assert!(
        (0.3..30.0).contains(&report.elapsed_s),
        "{}",
        report.elapsed_s
    );
    assert!(report.transactions > 10 && report.client_cpu_s > 0.0);
}

#[test]
fn a_request_to_stop_ends_the_run() {
    let engine = Noting::new(|_, _| Ok(()));
    let mut pool = connect(&engine, 2, 1);
    let control = RunControl::default();
    let other = control.clone();
    let asked = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        other.stop();
    });
    let before = Instant::now();
    let error = pool
        .run(
            ClientTask::mix(RunLimit::Time(Duration::from_secs(60))),
            &control,
        )
        .unwrap_err();
    assert_eq!(error, LoadError::Stopped);
    assert!(before.elapsed() < Duration::from_secs(30));
    asked.join().unwrap();
}

#[test]
fn filling_makes_every_row_once_and_the_same_again() {
    let rows = |seed| {
        let engine = Noting::new(|_, _| Ok(()));
        let count = fill_tables(
            &engine,
            &ResolvedWorkload::parse(WORKLOAD).unwrap(),
            seed,
            &RunControl::default(),
        )
        .unwrap();
        assert_eq!(count, 2500);
        engine.logs().concat()
    };
    let first = rows(1);
    let ids: Vec<_> = first
        .iter()
        .map(|(_, row)| row[0].as_int().unwrap())
        .collect();
    assert_eq!(ids, (1..=2500).collect::<Vec<_>>());
    assert_eq!(first, rows(1));
    assert_ne!(first, rows(2));
}

// Tables of the TPC-H-derived decision support, against an engine that only notes its rows.

fn filled(source: &str) -> Result<(u64, Vec<Log>), LoadError> {
    let json = format!(
        r#"{{"name": "dss", "think_ms": 0, "parameters": [], "transactions": [],
            "tables": [{{"name": "t", "source": {{"kind": "tpch", {source}}}}}]}}"#
    );
    let engine = Noting::new(|_, _| Ok(()));
    let rows = fill_tables(
        &engine,
        &ResolvedWorkload::parse(&json)?,
        1,
        &RunControl::default(),
    )?;
    Ok((rows, engine.logs()))
}

#[test]
fn rows_come_with_whole_numbers_as_such_and_all_else_as_text() {
    let (rows, logs) = filled(r#""table": "nation", "scale_factor": 0.01"#).unwrap();
    assert_eq!(rows, 25);
    let (_, brazil) = &logs[0][2];
    let expected = [
        DrawnValue::Int(2),
        DrawnValue::Text("BRAZIL".to_owned()),
        DrawnValue::Int(1),
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
