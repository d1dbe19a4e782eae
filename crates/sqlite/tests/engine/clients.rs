//! Clients on threads: loads, runs, sums, caps, and giving way.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use rusqlite::types::Value;
use serde_json::json;
use tierwise_load::{
    ClientTask, EngineDriver, LoadError, LoadReport, ResolvedWorkload, RunControl, RunLimit,
    WorkloadPlan,
};
use tierwise_sqlite::{OpenDatabase, SqliteConnector};

use crate::Home;

const ROWS: u64 = 25_000;
const WAL: [(&str, &str); 1] = [("journal_mode", "wal")];

fn transaction(name: &str, steps: &[&str], sum: Option<serde_json::Value>) -> serde_json::Value {
    let step = json!({"repeat": 1, "draw": [], "sql": steps, "sum": sum});
    json!({"name": name, "weight": 1, "autocommit": false, "steps": [step]})
}

fn workload() -> ResolvedWorkload {
    let counter = json!({"kind": "counter", "start": 1, "divide": 1, "modulo": null});
    let text = json!({"kind": "text", "low": 40, "high": 40});
    let sequence = json!({"kind": "sequence", "start": 1, "after": null, "global": true});
    let endless = "SELECT count(*) FROM item a, item b, item c WHERE a.id + b.id + c.id < 0";
    ResolvedWorkload::parse(
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
    database: OpenDatabase,
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
        .load(&workload(), 1, &RunControl::default());
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
    ) -> Result<LoadReport, LoadError> {
        let control = RunControl::default();
        let connector = Box::new(SqliteConnector::new(&self.address).unwrap());
        let plan = WorkloadPlan::new(&workload()).unwrap();
        let mut clients = EngineDriver::connect(connector, plan, clients, 1, &control)?;
        let task = ClientTask {
            limit: RunLimit::Transactions(count),
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

// A process that is killed in the middle of its transactions loses none that it had committed.

const HOME: &str = "TIERWISE_TEST_HOME";
const MODE: &str = "TIERWISE_TEST_MODE";
const LAST_ROUND: &str = "TIERWISE_TEST_LAST_ROUND";
const FOR_EVER: Duration = Duration::from_secs(3600);
const MODES: [&str; 4] = ["wal", "delete", "truncate", "persist"];
/// So few that a transaction of this test changes the database file, or the log, long before it commits.
const CACHE_PAGES: &str = "10";

fn open(home: &Home, mode: &str) -> OpenDatabase {
    home.open(&[
        ("journal_mode", mode),
        ("cache_size", CACHE_PAGES),
        ("cache_spill", "1"),
    ])
}

fn number(database: &OpenDatabase, sql: &str) -> i64 {
    match database.query(sql).unwrap()[..] {
        [ref row] => match row[..] {
            [Value::Integer(number)] => number,
            ref other => panic!("{sql}: {other:?}"),
        },
        ref other => panic!("{sql}: {other:?}"),
    }
}

/// Not a test of its own: the process that is killed. Each transaction writes its number 100 times;
/// the transaction `LAST_ROUND` never commits.
#[test]
fn writer() {
    let Some(path) = std::env::var_os(HOME) else {
        return;
    };
    let database = open(&Home::of(path.into()), &std::env::var(MODE).unwrap());
    let endless = std::env::var(LAST_ROUND).map_or(0, |round| round.parse().unwrap());
    let last = number(&database, "SELECT coalesce(max(round), 0) FROM item");
    for round in last + 1.. {
        database.query("BEGIN").unwrap();
        for _ in 0..4 {
            let insert = "INSERT INTO item WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n \
                          WHERE i < 25) SELECT {}, hex(randomblob(500)) FROM n";
            database
                .query(&insert.replace("{}", &round.to_string()))
                .unwrap();
        }
        database
            .query(&format!(
                "UPDATE total SET rows = rows + 100, last = {round}"
            ))
            .unwrap();
        eprintln!("written {round}");
        if round == endless {
            std::thread::sleep(FOR_EVER);
        }
        database.query("COMMIT").unwrap();
        eprintln!("committed {round}");
    }
}

struct Writer(Child, std::io::Lines<BufReader<ChildStderr>>);

impl Writer {
    fn start(home: &Home, mode: &str, last_round: u32) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "clients::writer", "--nocapture"])
            .env(HOME, home.path())
            .env(MODE, mode)
            .env(LAST_ROUND, last_round.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stderr.take().unwrap()).lines();
        Self(child, said)
    }

    /// Kill it after so many lines; gives all that it said until it was gone.
    fn kill_after(mut self, lines: usize) -> Vec<String> {
        let mut said: Vec<_> = self.1.by_ref().take(lines).map(Result::unwrap).collect();
        self.0.kill().unwrap();
        self.0.wait().unwrap();
        said.extend(self.1.map_while(Result::ok));
        said
    }
}

fn last_committed(said: &[String]) -> i64 {
    let mut rounds = said
        .iter()
        .filter_map(|line| line.strip_prefix("committed "));
    rounds.next_back().map_or(0, |round| round.parse().unwrap())
}

#[test]
fn a_killed_writer_loses_nothing_that_it_committed() {
    for mode in MODES {
        let home = Home::new(&format!("killed-{mode}"));
        let database = open(&home, mode);
        database
            .query("CREATE TABLE item (round INTEGER, body TEXT)")
            .unwrap();
        database
            .query("CREATE INDEX item_body ON item (body)")
            .unwrap();
        database
            .query("CREATE TABLE total (rows INTEGER, last INTEGER)")
            .unwrap();
        database.query("INSERT INTO total VALUES (0, 0)").unwrap();
        database.close();
        let mut left_behind = 0;
        for lines in [1, 3, 5] {
            let said = Writer::start(&home, mode, 0).kill_after(lines);
            left_behind += u64::from(home.size("doublewrite/tierwise.journal") > 0);
            left_behind += u64::from(home.size("log/tierwise.wal") > 0);
            let database = open(&home, mode);
            assert!(
                number(&database, "SELECT last FROM total") >= last_committed(&said),
                "{mode}"
            );
            assert_eq!(
                number(
                    &database,
                    "SELECT max(rows) - (SELECT count(*) FROM item) FROM total"
                ),
                0
            );
            let odd =
                "SELECT count(*) FROM (SELECT 1 FROM item GROUP BY round HAVING count(*) <> 100)";
            assert_eq!(number(&database, odd), 0, "{mode}");
            let checked = database.query("PRAGMA integrity_check").unwrap();
            assert_eq!(checked, [[Value::Text("ok".to_owned())]], "{mode}");
        }
        assert!(left_behind > 0, "{mode}: no kill left anything to recover");
    }
}

#[test]
fn what_a_killed_writer_left_is_recovered_from_its_place() {
    let home = Home::new("hot");
    let database = open(&home, "delete");
    database
        .query("CREATE TABLE item (round INTEGER, body TEXT)")
        .unwrap();
    database
        .query("CREATE TABLE total (rows INTEGER, last INTEGER)")
        .unwrap();
    database.query("INSERT INTO total VALUES (0, 0)").unwrap();
    drop(database);
    let before = home.size("data/tierwise.db");
    // Killed between the last write and the commit: the database file has changed, and the journal is hot.
    let said = Writer::start(&home, "delete", 2).kill_after(3);
    assert_eq!(said, ["written 1", "committed 1", "written 2"]);
    assert!(home.size("data/tierwise.db") > before);
    assert!(home.size("doublewrite/tierwise.journal") > 0);
    let database = open(&home, "delete");
    assert_eq!(home.size("doublewrite/tierwise.journal"), 0);
    assert_eq!(number(&database, "SELECT count(*) FROM item"), 100);
}
