//! What calls on files ask of devices, and what syncs are for.

use tierwise_recording::{BlockOp, CallKind, Device, NONE, Recording, Role, ThreadClass, UNKNOWN};
use tierwise_work::{Step, SyncRequests, Work};

use crate::made::{Made, count, cpu_ns, work_of};

/// Steps of the first session that move data.
fn moves(work: &Work) -> Vec<Step> {
    let steps = work.sessions[0].steps.iter().copied();
    let others = |step: &Step| matches!(step, Step::Cpu { .. } | Step::Reuse(_));
    steps.filter(|step| !others(step)).collect()
}

fn read(sector: u64) -> Step {
    Step::Read {
        role: Role::Data,
        sector,
        sectors: 16,
    }
}

#[test]
fn to_open_a_file_reads_what_its_directory_and_its_inode_take() {
    let (mut made, session, data) = Made::one_session("postgres");
    let waits = [(8_000_000, NONE), (6_000_000, NONE)];
    let mut doing = made.at(session, 0);
    doing
        .cpu(10_000)
        .call_with(CallKind::Name, NONE, (UNKNOWN, 0), &waits)
        .cpu(5_000);
    for (sector, from_ns, to_ns) in [(1_000, 10_900, 8_010_900), (5_000, 8_011_900, 14_011_900)] {
        made.block(data, session, BlockOp::Read, sector, (from_ns, to_ns));
    }
    assert_eq!(moves(&made.work()), [read(0), read(4_000)]);
}

#[test]
fn requests_sent_together_keep_their_order_and_one_is_waited_for() {
    let (mut made, session, data) = Made::one_session("postgres");
    let mut doing = made.at(session, 0);
    doing.read(data, (0, 8192), 50_000).cpu(5_000);
    made.block(data, session, BlockOp::Read, 1_000, (500, 50_500));
    made.block(data, session, BlockOp::Read, 1_016, (600, 90_000));
    let submit = |sector| Step::Submit {
        role: Role::Data,
        sector,
        sectors: 16,
        write: false,
    };
    let look = Step::CachedRead {
        role: Role::Data,
        sector: 0,
        sectors: 16,
    };
    assert_eq!(moves(&made.work()), [submit(0), submit(16), look]);
}

#[test]
fn a_wait_that_no_request_explains_is_not_for_the_device() {
    let (mut made, session, data) = Made::one_session("postgres");
    let mut doing = made.at(session, 0);
    doing.read(data, (0, 8192), 50_000).cpu(200_000);
    doing.read(data, (8192, 8192), 50_000);
    made.block(data, session, BlockOp::Read, 1_000, (500, 50_500));
    assert!(matches!(
        moves(&made.work())[..],
        [Step::Read { .. }, Step::CachedRead { sector: 16, .. }]
    ));
}

#[test]
fn a_sync_writes_the_dirty_pages_of_its_file_and_what_only_it_tells() {
    let (mut made, session, data) = Made::one_session("postgres");
    let mut doing = made.at(session, 0);
    doing.write(data, 0, 8192);
    doing.call(CallKind::Sync, data, (0, 8192), (0, NONE));
    doing.sync(data, 9_000_000).cpu(5_000);
    // Both pages that were written in the burst, and some that must have been written before it.
    made.block(data, session, BlockOp::Write, 1_000, (10_000, 20_000));
    made.block(data, session, BlockOp::Write, 1_800, (11_000, 30_000));
    let work = made.work();
    let script = &work.scripts[0];
    assert_eq!(script.writes, [(800, 16)]);
    assert_eq!(script.range, (0, 2048));
    assert!(matches!(
        moves(&work)[..],
        [
            Step::Write { .. },
            Step::WriteBack { sectors: 16, .. },
            Step::Sync { script: 0, .. }
        ]
    ));
    assert_eq!(work.most_dirty_bytes, 8192);
}

#[test]
fn what_another_sync_sends_to_the_journal_meanwhile_is_not_a_syncs_own() {
    let (mut made, session, data) = Made::one_session("postgres");
    let ms = 1_000_000;
    let mut doing = made.at(session, 0);
    doing.sync(data, 9 * ms).cpu(10 * ms);
    doing.sync(data, 9 * ms).cpu(5_000);
    // While its data is written another's is committed and flushed; then its own is flushed.
    made.block(data, session, BlockOp::Write, 1_000, (5_000, 5 * ms));
    made.journal(data, 9_000, (ms, 2 * ms));
    made.block(data, NONE, BlockOp::Flush, 0, (2 * ms, 3 * ms));
    made.block(data, session, BlockOp::Flush, 0, (5 * ms, 6 * ms));
    // The next commits what it has written.
    let begin = 20 * ms;
    made.block(data, session, BlockOp::Write, 1_000, (begin, begin + ms));
    made.journal(data, 9_016, (begin + ms, begin + 2 * ms));
    made.block(
        data,
        NONE,
        BlockOp::Flush,
        0,
        (begin + 2 * ms, begin + 3 * ms),
    );
    let scripts = made.work().scripts;
    let journal = |at: usize| scripts[at].journal_writes.len();
    assert_eq!((journal(0), scripts[0].flushes), (0, 1));
    assert_eq!(journal(1), 1);
}

#[test]
fn reads_lent_to_a_helper_are_needed_although_nobody_waited_for_them() {
    let (mut made, session, data) = Made::one_session("postgres");
    let helper = made.thread(ThreadClass::Background);
    for turn in 0..10 {
        let begin = turn * 300_000;
        made.at(session, begin).cpu(300_000);
        let mut doing = made.at(helper, begin);
        doing.lock(98_000, session);
        doing.read(data, (turn * 8192, 8192), 150_000).cpu(48_000);
    }
    let work = made.work();
    let awaits = |step: &Step| matches!(step, Step::Await { .. });
    let [waiter, lent] = &work.sessions[..] else {
        panic!("{} sessions", work.sessions.len());
    };
    assert_eq!(count(&waiter.steps, awaits), 10);
    assert_eq!(
        count(&lent.steps, |step| matches!(step, Step::Signal { .. })),
        10
    );
    let first = waiter.steps.iter().position(awaits);
    let before = &waiter.steps[..first.expect("an await")];
    let ran_ns = cpu_ns(before);
    assert!(
        (600_000..800_000).contains(&ran_ns),
        "two are read ahead: {ran_ns}"
    );
}

#[test]
fn a_file_in_two_parts_is_written_where_it_was_read() {
    let (mut made, session, data) = Made::one_session("postgres");
    let mut doing = made.at(session, 0);
    let far = 100 * 8192;
    for offset in [0, far] {
        doing.read(data, (offset, 8192), 50_000).cpu(8_000);
    }
    for offset in [8192, far + 8192] {
        doing.write(data, offset, 8192);
    }
    doing.empty(data);
    made.block(data, session, BlockOp::Read, 1_000, (900, 50_900));
    made.block(data, session, BlockOp::Read, 90_000, (60_900, 110_900));
    let written: Vec<u64> = moves(&made.work())
        .into_iter()
        .filter_map(|step| match step {
            Step::Write { sector, .. } | Step::Forget { sector, .. } => Some(sector),
            _ => None,
        })
        .collect();
    assert_eq!(written, [16, 89_016, 0, 89_000]);
}

#[test]
fn selected_files_have_a_role_and_a_space_of_their_own() {
    let (mut made, session, data) = Made::one_session("postgres");
    let other = made.beside(data);
    let mut doing = made.at(session, 0);
    doing.read(data, (0, 8192), 50_000).cpu(5_000);
    doing.read(other, (0, 8192), 50_000).cpu(5_000);
    made.block(data, session, BlockOp::Read, 1_000, (500, 50_000));
    made.block(other, session, BlockOp::Read, 9_000, (55_500, 105_000));
    let recording = made.finish().selecting(&[other]);
    let work = Work::from_recording(&recording).unwrap();
    let device = work
        .devices
        .iter()
        .find(|device| device.roles.len() > 1)
        .unwrap();
    let start = |role| device.roles.iter().find(|place| place.0 == role).unwrap().1;
    assert_eq!(start(Role::Selected) - start(Role::Data), 8_000);
}

#[test]
fn a_log_cannot_be_selected() {
    let mut made = Made::new("postgres");
    let (log, _) = made.log_and_data();
    let recording = made.finish().selecting(&[log, 77]);
    assert_eq!(recording.files[log as usize].role, Some(Role::Log));
}

// Devices of a recording.

/// A session that makes a file durable again and again.
fn syncing() -> Recording {
    let mut made = Made::new("postgres");
    let session = made.thread(ThreadClass::Session);
    let data = made.file(Some(Role::Data), 1 << 20);
    for begin in (0..50).map(|time| time * 200_000) {
        made.at(session, begin).sync(data, 120_000).cpu(70_000);
    }
    made.finish()
}

#[test]
fn an_emulated_disk_that_no_role_lies_on_says_nothing() {
    let mut recording = syncing();
    let alone = work_of(&recording);
    let strangers = Device {
        name: "loop7".to_owned(),
        profile: Some("kind = \"ram\"".to_owned()),
        shared: 1,
        path_us: Some(25.0),
        ..recording.about.devices[0].clone()
    };
    recording.about.devices.push(strangers);
    let beside = work_of(&recording);
    assert_eq!(beside.devices[1].path, None);
    let paths: Vec<(&str, u64)> = (beside.paths.iter())
        .map(|(profile, path)| (profile.as_str(), path.latency_ns))
        .collect();
    assert_eq!(
        paths,
        [("kind = \"ram\"", 25_000)],
        "a disk like it has its path"
    );
    assert_eq!(beside.devices[0].profile, alone.devices[0].profile);
    assert_eq!(beside.devices[1].profile, None, "it is merely mounted");
}

// What makes files and directories durable asks of devices.

const MS: u64 = 1_000_000;

/// Scripts in the order of syncs.
fn scripts(made: Made) -> Vec<SyncRequests> {
    let work = made.work();
    let steps = work.sessions[0].steps.iter();
    let synced = steps.filter_map(|step| match step {
        Step::Sync { script, .. } => Some(work.scripts[*script as usize].clone()),
        _ => None,
    });
    synced.collect()
}

#[test]
fn a_file_that_is_made_anew_elsewhere_is_written_once() {
    let (mut made, session, data) = Made::one_session("sqlite");
    for (turn, sector) in [(0, 1_000), (20 * MS, 5_000)] {
        let mut doing = made.at(session, turn);
        doing.write(data, 0, 512);
        doing.write(data, 512, 7680);
        doing.sync(data, 9 * MS).cpu(MS);
        let sent = (turn + 10_000, turn + 8 * MS);
        made.block(data, session, BlockOp::Write, sector, sent);
    }
    let found = scripts(made);
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|script| script.writes.is_empty()));
}

#[test]
fn pages_that_were_dirty_before_the_burst_are_written_though_calls_wrote_others() {
    let (mut made, session, data) = Made::one_session("sqlite");
    let mut doing = made.at(session, 0);
    doing.write(data, 0, 4096);
    doing.sync(data, 9 * MS).cpu(MS);
    made.block(data, session, BlockOp::Write, 1_000, (10_000, 8 * MS));
    made.block(data, session, BlockOp::Write, 1_800, (11_000, 8 * MS));
    assert_eq!(scripts(made)[0].writes, [(800, 16)]);
}

#[test]
fn who_writes_the_journal_itself_flushes_as_often_as_was_seen() {
    for (thread_is_caller, flushes) in [(true, 1), (false, 2)] {
        let (mut made, session, data) = Made::one_session("sqlite");
        made.at(session, 0).sync(data, 9 * MS).cpu(MS);
        let by = if thread_is_caller { session } else { NONE };
        made.journal_by(by, data, 9_000, (MS, 2 * MS));
        made.block(data, NONE, BlockOp::Flush, 0, (2 * MS, 3 * MS));
        let script = &scripts(made)[0];
        assert_eq!(
            (script.by_caller, script.flushes),
            (thread_is_caller, flushes)
        );
    }
}

#[test]
fn to_make_a_directory_durable_writes_the_journal_of_its_files() {
    let (mut made, session, data) = Made::one_session("sqlite");
    let directory = made.directory_of(data);
    let mut doing = made.at(session, 0);
    doing.call(CallKind::Sync, directory, (UNKNOWN, 0), (9 * MS, NONE));
    doing.cpu(MS);
    made.journal_by(session, data, 9_000, (MS, 2 * MS));
    made.block(data, NONE, BlockOp::Flush, 0, (2 * MS, 3 * MS));
    let found = scripts(made);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].journal_writes.len(), found[0].flushes), (1, 1));
    assert!(found[0].writes.is_empty() && found[0].range.0 == found[0].range.1);
}

// Files without a role that are flushed or waited for.

/// A session that flushes its log, and another file of that path once in so many commits.
fn recorded(path: &str, each: u64, in_order: bool) -> Recording {
    let mut made = Made::new("toy");
    let session = made.thread(ThreadClass::Session);
    let (log, data) = made.log_and_data();
    let other = made.beside(data);
    let mut doing = made.at(session, 0);
    for cycle in 0..100 {
        doing.cpu(50_000).write(log, cycle * 8192, 8192);
        doing.sync(log, 100_000);
        if cycle % each == 0 {
            let place = if in_order { cycle } else { 100 - cycle };
            doing.write(other, place * 100, 100);
            doing.sync(other, 100_000);
        }
    }
    let mut recording = made.finish();
    recording.files[log as usize].path = "/files/log".to_owned();
    recording.files[other as usize].role = None;
    recording.files[other as usize].path = path.to_owned();
    recording
}

#[test]
fn a_flushed_file_without_a_role_is_named() {
    let work = work_of(&recorded("/srv/b.000001", 2, true));
    let [file] = &work.unassigned[..] else {
        panic!("{:?}", work.unassigned);
    };
    assert_eq!(file.path, "/srv/b.000001");
    assert!((file.flush_share - 1.0 / 3.0).abs() < 0.01 && file.wait_share > 0.3);
    assert!(file.is_like_log);
    let scattered = work_of(&recorded("/srv/b", 2, false));
    assert!(!scattered.unassigned[0].is_like_log);
}

#[test]
fn what_is_rare_or_a_program_s_is_not() {
    for (path, each) in [("/srv/b.000001", 99), ("/etc/app/state", 2)] {
        let work = work_of(&recorded(path, each, true));
        assert!(work.unassigned.is_empty(), "{:?}", work.unassigned);
    }
}
