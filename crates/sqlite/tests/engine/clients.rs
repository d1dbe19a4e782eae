//! Clients on threads: loads, runs, sums, caps, and giving way.

use std::time::{Duration, Instant};

use rusqlite::types::Value;
use serde_json::json;
use tierwise_load::{Control, Driver, Limit, LoadError, Plan, Report, Task, Workload};
use tierwise_sqlite::{Database, SqliteConnector};

use crate::support::Home;

const ROWS: u64 = 25_000;
const WAL: [(&str, &str); 1] = [("journal_mode", "wal")];

fn transaction(name: &str, steps: &[&str], sum: Option<serde_json::Value>) -> serde_json::Value {
    let step = json!({"repeat": 1, "draw": [], "sql": steps, "sum": sum});
    json!({"name": name, "weight": 1, "autocommit": false, "steps": [step]})
}

fn workload() -> Workload {
    let counter = json!({"kind": "counter", "start": 1, "divide": 1, "modulo": null});
    let text = json!({"kind": "text", "low": 40, "high": 40});
    let sequence = json!({"kind": "sequence", "start": 1, "after": null, "global": true});
    let endless = "SELECT count(*) FROM item a, item b, item c WHERE a.id + b.id + c.id < 0";
    Workload::parse(
        &json!({
            "name": "test",
            "think_ms": 0,
            "tables": [{"name": "item", "rows": ROWS, "columns": [
                {"name": "id", "generator": counter}, {"name": "body", "generator": text}]}],
            "parameters": [{"name": "id", "generator": sequence}, {"name": "body", "generator": text}],
            "transactions": [
                transaction("scan", &["SELECT id, body FROM item"], Some(json!({"column": "id"}))),
                transaction("insert", &["INSERT INTO item VALUES (:id, :body)"], Some(json!({"parameter": "id"}))),
                transaction("raise", &["SELECT total FROM account", "UPDATE account SET total = total + 1"], None),
                transaction("none", &["UPDATE item SET body = :body WHERE id < 0"], Some(json!("rows"))),
                transaction("endless", &[endless], None),
                transaction("wrong", &["INSERT INTO account VALUES (NULL)"], None),
            ],
        })
        .to_string(),
    )
    .unwrap()
}

struct Filled {
    database: Database,
    address: String,
    home: Home,
}

fn filled(name: &str, pragmas: &[(&str, &str)]) -> Filled {
    let home = Home::new(name);
    let database = home.open(pragmas);
    database
        .query("CREATE TABLE item (id INTEGER, body TEXT)")
        .unwrap();
    database
        .query("CREATE TABLE account (total INTEGER NOT NULL)")
        .unwrap();
    database.query("INSERT INTO account VALUES (0)").unwrap();
    let address = home.address_json(pragmas);
    let rows = SqliteConnector::new(&address)
        .unwrap()
        .load(&workload(), 1, &Control::default());
    assert_eq!(rows, Ok(ROWS));
    Filled {
        database,
        address,
        home,
    }
}

impl Filled {
    fn run(
        &self,
        clients: usize,
        transaction: &str,
        count: u64,
        cap: Option<Duration>,
    ) -> Result<Report, LoadError> {
        let control = Control::default();
        let connector = Box::new(SqliteConnector::new(&self.address).unwrap());
        let plan = Plan::new(&workload()).unwrap();
        let mut clients = Driver::connect(connector, plan, clients, 1, &control)?;
        let task = Task {
            limit: Limit::Transactions(count),
            transaction: Some(transaction),
            cap,
        };
        clients.run(task, &control)
    }
}

#[test]
fn rows_are_loaded_and_summed() {
    let filled = filled("loaded", &WAL);
    let report = filled.run(1, "scan", 2, None).unwrap();
    assert_eq!(report.rows, 2 * ROWS);
    assert_eq!(report.checksum, Some((ROWS * (ROWS + 1)) as i64));
    let report = filled.run(3, "insert", 30, None).unwrap();
    assert_eq!((report.rows, report.checksum), (30, Some(30 * 31 / 2)));
    let report = filled.run(1, "none", 3, None).unwrap();
    assert_eq!((report.rows, report.checksum), (0, Some(0)));
    assert!(filled.home.size("log/tierwise.wal") > 0);
}

#[test]
fn clients_that_read_before_they_write_lose_no_update() {
    for mode in ["wal", "delete"] {
        let filled = filled(
            &format!("raise-{mode}"),
            &[("journal_mode", mode), ("synchronous", "off")],
        );
        let report = filled.run(4, "raise", 80, None).unwrap();
        assert_eq!((report.transactions, report.errors), (80, 0));
        let total = filled.database.query("SELECT total FROM account").unwrap();
        assert_eq!(total, [[Value::Integer(80)]], "{mode}");
    }
}

#[test]
fn a_cap_stops_a_statement() {
    let filled = filled("capped", &WAL);
    let begun = Instant::now();
    let report = filled
        .run(2, "endless", 2, Some(Duration::from_millis(300)))
        .unwrap();
    assert!(report.capped);
    assert_eq!(report.transactions, 0);
    assert!(begun.elapsed() >= Duration::from_millis(300));
    let report = filled
        .run(1, "scan", 1, Some(Duration::from_secs(60)))
        .unwrap();
    assert!(!report.capped);
    assert_eq!(report.transactions, 1);
}

#[test]
fn a_query_is_stopped_after_its_time() {
    let filled = filled("within", &WAL);
    let count = "SELECT count(*) FROM item a, item b, item c WHERE a.id + b.id + c.id < 0";
    let stopped = filled
        .database
        .query_within(count, Some(Duration::from_millis(50)));
    assert!(stopped.unwrap_err().capped);
    assert!(
        filled
            .database
            .query("SELECT count(*) FROM item a, item b WHERE a.id = 1 AND b.id > 0")
            .is_ok()
    );
}

#[test]
fn a_refused_statement_names_the_reason() {
    let filled = filled("wrong", &WAL);
    let error = filled.run(1, "wrong", 1, None).unwrap_err().to_string();
    let expected = "wrong: NOT NULL constraint failed: account.total";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn a_bad_address_is_refused_with_its_reason() {
    let home = Home::new("address");
    let refusal = |json: String| SqliteConnector::new(&json).err().unwrap().to_string();
    assert!(refusal("{}".to_owned()).contains("missing field `places`"));
    let pragma = home.address_json(&[("cache_size", "1; DROP TABLE item")]);
    assert!(
        refusal(pragma).contains("PRAGMA cache_size = 1; DROP TABLE item is no word or number")
    );
    let nowhere = home.address_json(&[]).replace("/temp\"", "/nowhere\"");
    assert!(refusal(nowhere).contains("nowhere: No such file or directory"));
}
