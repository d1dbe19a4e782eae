//! Sessions of a server: turns, commits seen and unseen, the client's part.

use tierwise_recording::{BlockOp, Burst, CallKind, NONE, Recording, Role, State, ThreadClass};
use tierwise_work::{CommitGrouping, Delay, Step, TurnPace, Work};

use crate::made::{Made, count, cpu_ns, work_of};

const FLUSH_NS: u64 = 100_000;
const TURN_NS: u64 = 200_000;

/// One session that leads every commit, another that waits for the leader's flush, but every fourth time computes
/// until it finds its place in the log flushed.
fn leader_and_follower(turns: u64) -> Recording {
    let mut made = Made::new("postgres");
    let [leader, follower] = made.sessions();
    let client = made.thread(ThreadClass::Client);
    let (log, socket) = (made.file(Some(Role::Log), 16 << 20), made.file(None, 0));
    let data = made.file(Some(Role::Data), 1 << 20);
    for turn in 0..turns {
        let begin = turn * TURN_NS;
        let mut doing = made.at(leader, begin);
        doing.receive(socket, 40, (20_000, client)).cpu(30_000);
        doing.write(log, turn * 8192, 8192);
        doing.sync(log, FLUSH_NS).cpu(10_000).send(socket, 11);
        let used = 22_000 + 30_000 + 2_000 + 2_000 + FLUSH_NS + 10_000 + 2_000;
        doing.poll(TURN_NS - used - 2_000, client);
        let flush = begin + 22_000 + 30_000 + 2_000 + 1_000;
        let (sent, flushed) = ((flush, flush + 50_000), (flush + 50_000, flush + FLUSH_NS));
        made.block(log, leader, BlockOp::Write, turn * 16, sent);
        made.block(log, NONE, BlockOp::Flush, 0, flushed);
        let mut doing = made.at(follower, begin);
        doing.receive(socket, 40, (20_000, client)).cpu(40_000);
        let until = flush + FLUSH_NS + 5_000 - begin - 62_000 - 1_000;
        let mut used = 62_000;
        if turn % 4 == 0 {
            doing.cpu(50_000).read(data, (0, 8192), 0).cpu(50_000);
            used += 102_000;
        } else {
            doing.lock(until, leader).cpu(1_000);
            used += until + 3_000;
        }
        doing.send(socket, 11);
        doing.poll(TURN_NS - used - 4_000, client);
    }
    made.at(client, 0).cpu(turns * TURN_NS);
    made.finish()
}

#[test]
fn commits_are_found_led_followed_and_unseen() {
    let work = work_of(&leader_and_follower(40));
    assert_eq!(work.sessions.len(), 2);
    let log = work.log.as_ref().expect("a log");
    assert_eq!(log.grouping, CommitGrouping::LeaderFollower);
    let mut scripts = log.scripts.iter();
    assert!(scripts.all(|script| script.flushes == 1 && script.writes.len() == 1));
    for session in &work.sessions {
        let commits = count(&session.steps, |step| matches!(step, Step::Commit));
        assert!((39..=41).contains(&commits), "{commits} commits");
        let appends = count(&session.steps, |step| matches!(step, Step::Append { .. }));
        assert_eq!(appends, commits);
        assert!(session.turns.iter().filter(|turn| turn.ends).count() >= 39);
    }
    assert!((1.8..=2.2).contains(&work.observed.commits_per_flush));
}

#[test]
fn waits_for_the_log_are_no_part_of_the_work() {
    let work = work_of(&leader_and_follower(40));
    for step in work.sessions.iter().flat_map(|session| &session.steps) {
        match *step {
            Step::Cpu {
                time_ns,
                client: false,
                ..
            } => assert!(time_ns < FLUSH_NS as u32),
            Step::Delay(Delay { timer, .. }) => assert!(!timer),
            Step::Sync { .. } | Step::Await { .. } => panic!("{step:?}"),
            _ => {}
        }
    }
}

#[test]
fn shares_sum_to_one_and_turns_to_the_span() {
    let work = work_of(&leader_and_follower(40));
    let sum: f64 = work.observed.shares.iter().map(|(_, share)| share).sum();
    assert!((sum - 1.0).abs() < 1e-9);
    for session in &work.sessions {
        let recorded_ns: u64 = session.turns.iter().map(|turn| turn.recorded_ns).sum();
        assert_eq!(recorded_ns, work.observed.span_ns);
    }
}

#[test]
fn the_clients_part_ends_a_turn() {
    let work = work_of(&leader_and_follower(40));
    for session in &work.sessions {
        for turn in session.turns.iter().rev().skip(1).filter(|turn| turn.ends) {
            let end = (turn.first_step + turn.steps) as usize;
            let tail = &session.steps[end - turn.tail_steps as usize..end];
            assert!(!tail.is_empty());
            let of_client = |step: &Step| matches!(step, Step::Cpu { client: true, .. });
            assert!(tail.iter().all(of_client));
        }
    }
}

#[test]
fn a_turn_is_whole_if_its_client_was_awaited_when_the_burst_began_and_ended() {
    let mut made = Made::new("postgres");
    let (session, socket) = (made.thread(ThreadClass::Session), made.file(None, 0));
    let mut doing = made.at(session, 0);
    doing.receive(socket, 40, (20_000, NONE)).cpu(500_000);
    doing.send(socket, 15);
    doing.poll(300_000, NONE);
    let mut recording = made.finish();
    // On a core only between its waits.
    let burst = &mut recording.about.bursts[0];
    (burst.start_ns, burst.end_ns) = (burst.start_ns + 1_000, burst.end_ns - 1_000);
    let (start_ns, end_ns) = (burst.start_ns, burst.end_ns);
    let inside = |state: &State| start_ns <= state.start_ns && state.end_ns <= end_ns;
    recording.states.retain(inside);
    recording.calls[0].start_ns = start_ns;
    let work = work_of(&recording);
    assert_eq!(work.observed.latencies_ns, [504_000]);
    let sleeps = |step: &Step| matches!(step, Step::Delay(Delay { timer: true, .. }));
    assert!(!work.sessions[0].steps.iter().any(sleeps));
}

#[test]
fn the_queue_for_a_client_thread_is_no_part_of_the_work() {
    let work = work_of(&leader_and_follower(40));
    for session in &work.sessions {
        assert_eq!(session.client, Some(2), "{}", session.name);
        let away = count(&session.steps, |step| matches!(step, Step::Delay(_)));
        assert_eq!(away, 0, "{}", session.name);
    }
}

/// A client's thread with two sessions in turn, some time for a request, then asleep. What it does for one session
/// takes nothing from the pause of the other.
#[test]
fn a_client_that_sleeps_thinks_for_all_its_sessions() {
    const PAUSE_NS: u64 = 5_000_000;
    for cpu_ns in [20_000, 1_500_000] {
        let mut made = Made::new("postgres");
        let sessions: [u32; 2] = made.sessions();
        let client = made.thread(ThreadClass::Client);
        let socket = made.file(None, 0);
        for (session, first_ns) in sessions.into_iter().zip([0, PAUSE_NS]) {
            let mut doing = made.at(session, 0);
            for turn in 0..20 {
                let wait_ns = match turn {
                    0 => first_ns + cpu_ns - 1_000,
                    _ => 2 * PAUSE_NS - 34_000,
                };
                doing.receive(socket, 40, (wait_ns, client));
                doing.cpu(30_000).send(socket, 11);
            }
        }
        let mut doing = made.at(client, 0);
        for _ in 0..40 {
            let wait = (PAUSE_NS - cpu_ns - 2_000, NONE);
            doing.cpu(cpu_ns).call(CallKind::Poll, NONE, (0, 0), wait);
        }
        let work = made.work();
        for session in &work.sessions {
            assert_eq!(session.client, Some(client), "{}", session.name);
            let delays = session.steps.iter().filter_map(|step| match step {
                Step::Delay(delay) => Some(delay.time_ns),
                _ => None,
            });
            let thought_ns = delays.sum::<u64>() as f64 / session.turns.len() as f64;
            let share = (thought_ns + cpu_ns as f64) / (2 * PAUSE_NS) as f64;
            assert!((0.9..1.0).contains(&share), "{}: {share}", session.name);
        }
    }
}

#[test]
fn a_recording_without_bursts_or_sessions_is_refused() {
    let mut recording = Recording::default();
    let refused = |recording: &Recording| {
        let error = Work::from_recording(recording).expect_err("nothing in it");
        error.message
    };
    assert!(refused(&recording).contains("before its first burst"));
    recording.about.bursts.push(Burst {
        start_ns: 0,
        end_ns: 1000,
        storage_cpu: None,
    });
    assert!(refused(&recording).contains("no session"));
}

/// Transactions of "begin", two updates, "commit", each followed by an update alone and a query alone.
#[test]
fn an_update_alone_commits_and_one_within_does_not() {
    let mut made = Made::new("postgres");
    let session = made.thread(ThreadClass::Session);
    let (log, socket) = (made.file(Some(Role::Log), 1 << 20), made.file(None, 0));
    let mut doing = made.at(session, 0);
    let mut written = 0;
    for _ in 0..30 {
        for (received, sent, commits) in [
            (11, 17, false),
            (60, 25, false),
            (60, 25, false),
            (12, 18, true),
            (60, 25, true),
            (46, 100, false),
        ] {
            doing.receive(socket, received, (30_000, NONE)).cpu(10_000);
            if commits {
                doing.write(log, written, 8192);
                doing.sync(log, 100_000);
                written += 8192;
            }
            doing.send(socket, sent);
        }
    }
    let work = made.work();
    let session = &work.sessions[0];
    let ends = session.turns.iter().filter(|turn| turn.ends).count();
    let commits = count(&session.steps, |step| matches!(step, Step::Commit));
    assert!((88..=91).contains(&ends), "{ends} transactions");
    assert_eq!(commits, 60);
}

// Reads, writes, helpers and callers of a library, as steps.

/// Reads one page after the other: the first from the device, the second while the third is read ahead, the
/// third before it is there.
fn reader() -> Made {
    let (mut made, session, data) = Made::one_session("postgres");
    let mut doing = made.at(session, 0);
    doing.cpu(10_000);
    doing.read(data, (0, 8192), 50_000).cpu(5_000);
    doing.read(data, (8192, 8192), 0).cpu(5_000);
    doing.read(data, (16384, 8192), 30_000).cpu(5_000);
    doing.write(data, 0, 8192);
    doing.empty(data).cpu(5_000);
    made.block(data, session, BlockOp::Read, 1_000, (10_500, 60_500));
    made.block(data, session, BlockOp::Read, 1_032, (67_500, 105_500));
    made
}

#[test]
fn reads_wait_for_their_own_request_or_for_one_under_way() {
    let work = reader().work();
    let steps = &work.sessions[0].steps;
    let moves: Vec<&Step> = steps
        .iter()
        .filter(|step| !matches!(step, Step::Cpu { .. } | Step::Reuse(_)))
        .collect();
    let role = Role::Data;
    assert_eq!(
        moves,
        [
            &Step::Read {
                role,
                sector: 0,
                sectors: 16
            },
            &Step::Submit {
                role,
                sector: 32,
                sectors: 16,
                write: false
            },
            &Step::CachedRead {
                role,
                sector: 16,
                sectors: 16
            },
            &Step::CachedRead {
                role,
                sector: 32,
                sectors: 16
            },
            &Step::Write {
                role,
                sector: 0,
                sectors: 16
            },
            &Step::Forget {
                role,
                sector: 0,
                sectors: 2048
            },
        ]
    );
}

#[test]
fn processor_time_is_kept_and_waits_are_not() {
    let work = reader().work();
    let ran_ns = cpu_ns(&work.sessions[0].steps);
    let rounded = work.sessions[0].steps.len() as u64;
    assert!(
        ran_ns.abs_diff(10_000 + 4 * 5_000 + 5 * 2_000) <= rounded,
        "{ran_ns}"
    );
}

#[test]
fn a_librarys_caller_is_cut_after_commits() {
    let mut made = Made::new("sqlite");
    let session = made.thread(ThreadClass::Session);
    let (log, data) = made.log_and_data();
    let mut doing = made.at(session, 0);
    for turn in 0..10 {
        doing.read(data, (turn * 4096, 4096), 0).cpu(20_000);
        doing.write(log, turn * 4120, 24);
        doing.write(log, turn * 4120 + 24, 4096);
        doing.sync(log, 1_000_000).cpu(2_000);
    }
    let work = made.work();
    let session = &work.sessions[0];
    assert_eq!(
        work.log.as_ref().map(|log| log.grouping),
        Some(CommitGrouping::Exclusive)
    );
    assert_eq!(session.turns.iter().filter(|turn| turn.ends).count(), 10);
    let appended: Vec<u32> = session
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Append { size_bytes } => Some(*size_bytes),
            _ => None,
        })
        .collect();
    assert_eq!(appended, [4120; 10]);
}

#[test]
fn a_wait_for_a_helper_is_a_signal_and_an_await() {
    let mut made = Made::new("postgres");
    let session = made.thread(ThreadClass::Session);
    let helper = made.thread(ThreadClass::Background);
    let data = made.file(Some(Role::Data), 1 << 20);
    for turn in 0..5 {
        let begin = turn * 300_000;
        made.at(session, begin).cpu(100_000).lock(198_000, helper);
        let mut doing = made.at(helper, begin);
        doing.lock(98_000, session);
        doing.read(data, (turn * 8192, 8192), 150_000).cpu(48_000);
    }
    let work = made.work();
    assert_eq!(work.sessions.len(), 2);
    assert_eq!(work.sessions[1].pace, TurnPace::Loop);
    for session in &work.sessions {
        let signals = count(&session.steps, |step| matches!(step, Step::Signal { .. }));
        let awaits = count(&session.steps, |step| matches!(step, Step::Await { .. }));
        assert_eq!((signals, awaits), (5, 5));
    }
}

#[test]
fn a_wait_for_a_thread_that_none_ends_is_a_timers() {
    let mut made = Made::new("duckdb");
    let session = made.thread(ThreadClass::Session);
    made.at(session, 0)
        .cpu(100_000)
        .lock(20_000_000, NONE)
        .cpu(100_000);
    let work = made.work();
    let timer =
        |step: &Step| matches!(step, Step::Delay(away) if away.timer && away.time_ns == 20_000_000);
    assert!(work.sessions[0].steps.iter().any(timer));
}
