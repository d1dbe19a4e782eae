//! What a transaction is: by what replies say, by requests of the same shape in other places, by others' count.

use crate::made::{Doing, Made, count, work_of};
use tierwise_recording::{
    NONE, Recording, Role, ThreadClass,
    TransactionStatus::{self, Failed, Idle, InTransaction, Unknown},
};
use tierwise_work::Step;

const ROUNDS: u64 = 40;

/// A request and its replies: bytes received, whether the log is flushed, bytes sent and the status of each reply.
type Request<'a> = (u64, bool, &'a [(u64, Option<TransactionStatus>)]);

/// A session of one server that is asked the same again and again.
struct Asked {
    made: Made,
    session: u32,
    log: u32,
    socket: u32,
}

impl Asked {
    fn new() -> Self {
        let mut made = Made::new("mariadb");
        Self {
            session: made.thread(ThreadClass::Session),
            log: made.file(Some(Role::Log), 1 << 20),
            socket: made.file(None, 0),
            made,
        }
    }

    /// The same, and another session flushes the log in each turn that does not.
    fn rounds_beside_flushes(self, requests: impl Fn(u64) -> Vec<Request<'static>>) -> Recording {
        self.recorded(requests, true)
    }

    fn rounds(self, requests: impl Fn(u64) -> Vec<Request<'static>>) -> Recording {
        self.recorded(requests, false)
    }

    fn recorded(
        mut self,
        requests: impl Fn(u64) -> Vec<Request<'static>>,
        beside: bool,
    ) -> Recording {
        let mut doing = self.made.at(self.session, 0);
        let mut written = 0;
        let mut without_ns = Vec::new();
        for round in 0..ROUNDS {
            for (received, commits, replies) in requests(round) {
                doing
                    .receive(self.socket, received, (30_000, NONE))
                    .cpu(10_000);
                if commits {
                    flush(&mut doing, self.log, written);
                    written += 8192;
                } else {
                    without_ns.push(doing.now_ns() - 10_000);
                }
                for &(sent, status) in replies {
                    doing.cpu(5_000);
                    match status {
                        Some(status) => doing.reply(self.socket, sent, status),
                        None => doing.send(self.socket, sent),
                    };
                }
            }
        }
        if beside {
            let other = self.made.thread(ThreadClass::Session);
            for (at, from_ns) in (written / 8192..).zip(without_ns) {
                let mut doing = self.made.at(other, from_ns);
                doing.write(self.log, at * 8192, 8192).sync(self.log, 5_000);
            }
        }
        self.made.finish()
    }
}

fn flush(doing: &mut Doing<'_>, log: u32, offset_bytes: u64) {
    doing.write(log, offset_bytes, 8192).sync(log, 100_000);
}

/// Transactions that end, and commits, for each round.
fn counts(recording: &Recording) -> (f64, f64) {
    let work = work_of(recording);
    let session = &work.sessions[0];
    let ends = session.turns.iter().filter(|turn| turn.ends).count();
    let commits = count(&session.steps, |step| *step == Step::Commit);
    let rounds = ROUNDS as f64;
    (ends as f64 / rounds, commits as f64 / rounds)
}

#[track_caller]
fn assert_counts(recording: &Recording, transactions: f64, committed: f64) {
    let (ends, commits) = counts(recording);
    let near = |count: f64, wanted: f64| (count - wanted).abs() <= 1.5 / ROUNDS as f64;
    assert!(near(ends, transactions), "{ends} transactions a round");
    assert!(near(commits, committed), "{commits} commits a round");
}

/// Prepared statements: "begin" and "commit" look the same. Not every commit shows, as others flush for it.
#[test]
fn begin_and_commit_of_one_shape_are_told_apart_by_what_comes_before() {
    let recording = Asked::new().rounds_beside_flushes(|round| {
        vec![
            (14, false, &[(11, None)]),
            (18, false, &[(180, None)]),
            (26, false, &[(52, None)]),
            (30, false, &[(11, None)]),
            (14, round % 3 > 0, &[(11, None)]),
        ]
    });
    assert_counts(&recording, 1.0, 1.0);
}

/// Every third update finds nothing to change, as after a delete.
#[test]
fn a_transaction_that_no_flush_can_have_covered_commits_nothing() {
    let recording = Asked::new().rounds(|round| {
        vec![
            (26, false, &[(52, None)]),
            (40, round % 3 > 0, &[(11, None)]),
        ]
    });
    assert_counts(&recording, 1.0, 2.0 / 3.0);
}

#[test]
fn replies_tell_begin_from_commit_where_nothing_is_flushed() {
    let recording = Asked::new().rounds(|_| {
        vec![
            (14, false, &[(11, Some(InTransaction))]),
            (18, false, &[(180, Some(InTransaction))]),
            (14, false, &[(11, Some(Idle))]),
        ]
    });
    assert_counts(&recording, 1.0, 0.0);
}

/// MariaDB's binary log: the first in the queue syncs for all; a session that then syncs itself waits once.
#[test]
fn who_waits_for_a_sync_of_the_second_log_has_one_of_its_own() {
    for (engine, shared) in [("mariadb", true), ("toy", false)] {
        let mut made = Made::new(engine);
        let [leader, follower] = made.sessions();
        let (binlog, socket) = (made.file(Some(Role::Archive), 1 << 20), made.file(None, 0));
        for round in 0..ROUNDS {
            let mut doing = made.at(leader, round * 20_000_000);
            doing.receive(socket, 60, (30_000, NONE)).cpu(100_000);
            doing.sync(binlog, 9_000_000).cpu(20_000).send(socket, 25);
            let mut doing = made.at(follower, round * 20_000_000);
            doing.receive(socket, 60, (30_000, NONE)).cpu(200_000);
            doing.lock(8_910_000, leader).cpu(20_000).send(socket, 25);
        }
        let work = made.work();
        let syncs = |session: usize| {
            let steps = work.sessions[session].steps.iter();
            steps
                .filter(|step| matches!(step, Step::Sync { .. }))
                .count() as u64
        };
        assert_eq!(
            (syncs(0), syncs(1)),
            (ROUNDS, if shared { ROUNDS } else { 0 })
        );
        assert!(work.scripts.iter().all(|script| script.shared == shared));
    }
}

#[test]
fn a_ping_is_no_transaction_whether_others_commit_or_only_read() {
    for commits in [true, false] {
        let recording = Asked::new().rounds(|_| match commits {
            true => vec![
                (5, false, &[(11, Some(Idle))]),
                (60, true, &[(25, Some(Idle))]),
            ],
            false => vec![
                (5, false, &[(11, Some(Idle))]),
                (60, false, &[(90, Some(Idle))]),
            ],
        });
        assert_counts(&recording, 1.0, if commits { 1.0 } else { 0.0 });
    }
}

#[test]
fn a_statement_alone_is_a_transaction_and_one_within_is_none() {
    let recording = Asked::new().rounds(|_| {
        vec![
            (60, true, &[(25, Some(Idle))]),
            (11, false, &[(17, Some(InTransaction))]),
            (60, false, &[(25, Some(InTransaction))]),
            (60, false, &[(25, Some(InTransaction))]),
            (12, true, &[(18, Some(Idle))]),
            (46, false, &[(100, Some(Idle))]),
        ]
    });
    assert_counts(&recording, 3.0, 2.0);
}

#[test]
fn a_transaction_that_fails_ends_with_its_rollback_and_commits_nothing() {
    let recording = Asked::new().rounds(|round| {
        let fails = round % 2 == 0;
        vec![
            (11, false, &[(17, Some(InTransaction))]),
            match fails {
                true => (60, false, &[(90, Some(Failed))]),
                false => (60, false, &[(25, Some(InTransaction))]),
            },
            match fails {
                true => (14, false, &[(20, Some(Idle))]),
                false => (12, true, &[(18, Some(Idle))]),
            },
        ]
    });
    assert_counts(&recording, 1.0, 0.5);
}

#[test]
fn several_statements_in_one_request_are_as_many_transactions_as_end() {
    let together: &[_] = &[
        (11, Some(InTransaction)),
        (52, Some(Unknown)),
        (11, Some(Idle)),
    ];
    let recording = Asked::new().rounds(|_| vec![(90, true, together)]);
    assert_counts(&recording, 1.0, 1.0);
    let pipelined: &[_] = &[(64, Some(Idle)), (64, Some(Idle)), (64, Some(Idle))];
    let recording = Asked::new().rounds(|_| vec![(90, false, pipelined)]);
    assert_counts(&recording, 3.0, 0.0);
}

/// MariaDB's reply to an update ends with a message.
#[test]
fn a_reply_that_hides_its_status_ends_a_transaction_if_such_mostly_commit() {
    let with_autocommit = Asked::new().rounds(|_| {
        vec![
            (60, true, &[(52, Some(Unknown))]),
            (40, false, &[(90, Some(Idle))]),
        ]
    });
    assert_counts(&with_autocommit, 2.0, 1.0);
    let without = Asked::new().rounds(|_| {
        vec![
            (60, false, &[(52, Some(Unknown))]),
            (11, true, &[(11, Some(Idle))]),
        ]
    });
    assert_counts(&without, 1.0, 1.0);
}

#[test]
fn what_commits_and_stays_in_a_transaction_has_begun_the_next() {
    let recording = Asked::new().rounds(|_| {
        vec![
            (60, false, &[(25, Some(InTransaction))]),
            (24, true, &[(11, Some(InTransaction))]),
        ]
    });
    assert_counts(&recording, 1.0, 1.0);
}

#[test]
fn replies_that_never_tell_are_as_good_as_none() {
    let of = |status: Option<TransactionStatus>| {
        let replies: &'static [_] = match status {
            Some(_) => &[(99, Some(Unknown))],
            None => &[(99, None)],
        };
        Asked::new().rounds(|_| vec![(60, true, replies), (40, false, replies)])
    };
    assert_eq!(counts(&of(Some(Unknown))), counts(&of(None)));
}

#[test]
fn rates_follow_a_count_that_differs_and_the_difference_is_said() {
    let recording = |each: f64| {
        let requests = |_| vec![(60, true, &[(25, Some(Idle))][..])];
        let mut recording = Asked::new().rounds(requests);
        recording.about.transactions = Some((each * ROUNDS as f64) as u64);
        recording
    };
    let shown = work_of(&recording(1.0));
    assert!(!shown.limits.iter().any(|limit| limit.contains("counted")));
    let counted = work_of(&recording(1.5));
    let ratio = counted.observed.transactions_per_s / shown.observed.transactions_per_s;
    assert!((1.45..=1.55).contains(&ratio), "{ratio}");
    let said = |limit: &&String| limit.starts_with("50 % more transactions were counted");
    assert_eq!(counted.limits.iter().filter(said).count(), 1);
}

/// Ends of transactions of a library's caller that commits, and of another that reads for a second; and whether they
/// are slices of time.
fn ends_beside_a_reader(commits: u64) -> (usize, bool) {
    let mut made = Made::new("rocksdb");
    let [writer, reader] = made.sessions();
    let (log, data) = made.log_and_data();
    let mut doing = made.at(writer, 0);
    for commit in 0..commits {
        flush(doing.cpu(10_000_000), log, commit * 8192);
    }
    let mut doing = made.at(reader, 0);
    for page in 0..1_000 {
        doing.read(data, (page * 512, 512), 0).cpu(1_000_000);
    }
    let work = made.work();
    let turns = work.sessions.iter().flat_map(|session| &session.turns);
    (turns.filter(|turn| turn.ends).count(), work.observed.sliced)
}

/// `db_bench readrandom` syncs its log twice as it opens, and then reads: its unit is no sync.
#[test]
fn slices_of_time_count_beside_few_commits_and_not_beside_many() {
    let (slices, sliced) = ends_beside_a_reader(2);
    assert!(sliced && slices > 80, "{slices}");
    assert_eq!(ends_beside_a_reader(40), (40, false));
}
