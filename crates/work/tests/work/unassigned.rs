//! Files without a role that are flushed or waited for.

use tierwise_recording::{Recording, ThreadClass};

use crate::made::{Made, work_of};

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
