//! What block requests tell of the kernel's threads: of a file system's journal, and on the way to emulated disks.

use crate::made::Made;
use tierwise_recording::{
    BlockOp, CallKind, Device, NONE, Recording, Role, StorageCpu, ThreadClass, UNKNOWN,
};
use tierwise_work::{JournalRules, Work};

/// A session that makes a file durable again and again, so often that nothing is cold: its journal's thread has run
/// after 20, 15 and 12 µs, and 6 µs pass between its record and a flush. Before, it waits 10 µs for each of its pages.
fn committing(times: u64, pages: u64) -> Recording {
    let mut made = Made::new("postgres");
    let session = made.thread(ThreadClass::Session);
    let data = made.file(Some(Role::Data), 1 << 20);
    let us = 1_000;
    for begin in (0..times).map(|time| time * (200 + pages * 301) * us) {
        let mut waits = vec![(10 * us, NONE); pages as usize];
        waits.push((163 * us, NONE));
        let mut doing = made.at(session, begin);
        doing.call_with(CallKind::Sync, data, (UNKNOWN, 0), &waits);
        doing.cpu(35 * us);
        for page in 0..pages {
            let sent = begin + us + page * 11 * us;
            made.block(
                data,
                session,
                BlockOp::Write,
                page * 8,
                (sent, sent + 10 * us),
            );
        }
        let from = begin + us + pages * 11 * us;
        made.journal(data, 9_000, (from + 20 * us, from + 50 * us));
        made.block(
            data,
            NONE,
            BlockOp::Flush,
            0,
            (from + 65 * us, from + 90 * us),
        );
        made.journal(data, 9_016, (from + 96 * us, from + 120 * us));
        made.block(
            data,
            NONE,
            BlockOp::Flush,
            0,
            (from + 126 * us, from + 151 * us),
        );
    }
    made.finish()
}

fn work(recording: &Recording) -> Work {
    Work::from_recording(recording).expect("a sound recording")
}

#[test]
fn what_a_journals_thread_runs_is_between_its_requests() {
    let rules = work(&committing(50, 0)).journal;
    let near = |found_ns: u32, us: f64| (f64::from(found_ns) / 1e3 - us).abs() < 0.1 * us;
    assert!(near(rules.begins_ns, 20.0), "{rules:?}");
    assert!(near(rules.goes_on_ns, 15.0), "{rules:?}");
    assert!(near(rules.ends_ns, 12.0), "{rules:?}");
    assert!(near(rules.relays_ns, 6.0), "{rules:?}");
    // A thread that waited for longer, for many pages, is colder: of 20 µs it would run less.
    let after_pages = work(&committing(50, 10)).journal;
    assert!(
        (5_000..20_000).contains(&after_pages.begins_ns),
        "{after_pages:?}"
    );
}

#[test]
fn a_few_commits_of_a_journal_are_not_believed() {
    assert_eq!(work(&committing(5, 0)).journal, JournalRules::USUAL);
}

#[test]
fn what_answers_at_once_tells_how_long_its_path_is() {
    let path_us = |device_us: u64| {
        let mut made = Made::new("postgres");
        let session = made.thread(ThreadClass::Session);
        let data = made.file(Some(Role::Data), 1 << 20);
        let us = 1_000;
        for at in (0..50).map(|time| time * (200 + device_us) * us) {
            made.at(session, at)
                .sync(data, (120 + device_us) * us)
                .cpu(70 * us);
            let written = at + (55 + device_us) * us;
            made.block(data, session, BlockOp::Write, 1_000, (at + us, written));
            made.block(
                data,
                NONE,
                BlockOp::Flush,
                0,
                (written + us, written + 51 * us),
            );
        }
        let mut recording = made.finish();
        recording.about.devices[0].profile = Some("kind = \"ram\"".to_owned());
        recording.about.bursts[0].storage_cpu = Some(StorageCpu {
            server_ns: 2_000_000,
            kernel_ns: 4_000_000,
        });
        let storage = work(&recording).storage.expect("what storage used");
        storage.path_ns.expect("a path") / 1e3
    };
    // Writes and flushes of a device that answers at once; of a disk the flushes alone, which came late.
    // Those less than 0.1 ms after another are quicker than what is stated.
    assert!((54.0..=60.0).contains(&path_us(0)), "{}", path_us(0));
    let late_us = path_us(8_000);
    assert!((15.0..25.0).contains(&late_us), "{late_us}");
}

#[test]
fn an_emulated_disk_that_no_role_lies_on_says_nothing() {
    let alone = work(&committing(50, 0));
    let mut recording = committing(50, 0);
    let strangers = Device {
        name: "loop7".to_owned(),
        profile: Some("kind = \"ram\"".to_owned()),
        shared: 1,
        ..recording.about.devices[0].clone()
    };
    recording.about.devices.push(strangers);
    let beside = work(&recording);
    assert_eq!(beside.devices[0].profile, alone.devices[0].profile);
    assert_eq!(beside.devices[1].profile, None, "it is merely mounted");
}
