//! Devices of a recording.

use tierwise_recording::{Device, Recording, Role, ThreadClass};

use crate::made::{Made, work_of};

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
        ..recording.about.devices[0].clone()
    };
    recording.about.devices.push(strangers);
    let beside = work_of(&recording);
    assert_eq!(beside.devices[0].profile, alone.devices[0].profile);
    assert_eq!(beside.devices[1].profile, None, "it is merely mounted");
}
