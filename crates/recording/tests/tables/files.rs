//! Written and read again, a recording is the same; what is no recording is refused with a reason.

use std::fs;

use crate::support::{Folder, about, about_of, burst, files, recording, threads, write};
use serde_json::Value;
use tierwise_recording::{
    About, ClientKind, ClientProgram, FORMAT_VERSION, Machine, NONE, Recording, StateKind,
    UserError, Writer,
};

fn refusal(folder: &Folder) -> UserError {
    Recording::read(&folder.0).unwrap_err()
}

/// Change `about.json` as a program of another version would have written it.
fn edit_about(folder: &Folder, edit: impl FnOnce(&mut Value)) {
    let file = folder.0.join("about.json");
    let mut value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    edit(&mut value);
    fs::write(file, value.to_string()).unwrap();
}

#[test]
fn a_limited_server_without_clients_beside_it_has_fewer_cores() {
    let cores = |limit: Option<f64>, kinds: &[ClientKind]| {
        let clients = kinds.iter().map(|kind| ClientProgram {
            kind: *kind,
            ..ClientProgram::default()
        });
        let about = About {
            machine: Machine {
                cores: 8,
                core_limit: limit,
                ..Machine::default()
            },
            clients: clients.collect(),
            ..About::default()
        };
        about.server_cores()
    };
    let remote = [ClientKind::Remote];
    assert_eq!(cores(None, &remote), 8);
    assert_eq!(cores(Some(1.5), &remote), 2);
    assert_eq!(cores(Some(0.1), &remote), 1);
    assert_eq!(cores(Some(f64::NAN), &remote), 1);
    assert_eq!(cores(Some(2.0), &[ClientKind::Remote, ClientKind::Tool]), 8);
    assert_eq!(cores(Some(2.0), &[]), 8, "it is not known where they are");
}

#[test]
fn bursts_are_read_in_order_of_threads() {
    let folder = Folder::new("order");
    let read = recording(&folder);
    assert_eq!(
        (read.threads.clone(), read.files.clone()),
        (threads(), files())
    );
    assert_eq!(read.states.len(), 3 * burst(0).states.len());
    assert!(
        read.states
            .is_sorted_by_key(|state| (state.thread, state.start_ns))
    );
    assert!(
        read.calls
            .is_sorted_by_key(|call| (call.thread, call.start_ns))
    );
    assert!(read.blocks.is_sorted_by_key(|block| block.issued_ns));
}

#[test]
fn states_keep_their_calls() {
    let folder = Folder::new("calls");
    let read = recording(&folder);
    let blocked = read
        .states
        .iter()
        .filter(|state| state.kind == StateKind::Blocked);
    for state in blocked {
        let call = &read.calls[state.call as usize];
        let burst_start_ns = state.start_ns / 1000;
        assert_eq!(
            (call.thread, call.start_ns / 1000),
            (state.thread, burst_start_ns)
        );
    }
    assert!(read.states.iter().any(|state| state.call == NONE));
}

#[test]
fn a_recording_written_whole_is_read_the_same() {
    let (first, second) = (Folder::new("whole-1"), Folder::new("whole-2"));
    let read = recording(&first);
    read.write(&second.0).unwrap();
    assert_eq!(Recording::read(&second.0).unwrap(), read);
    assert_eq!(read.about.version, FORMAT_VERSION);
    assert_eq!(read.about.bursts, about().bursts);
}

#[test]
fn an_empty_recording_can_be_read() {
    let folder = Folder::new("empty");
    let writer = Writer::create(&folder.0).unwrap();
    writer.finish(about(), Vec::new(), Vec::new()).unwrap();
    assert!(Recording::read(&folder.0).unwrap().states.is_empty());
}

#[test]
fn many_rows_take_several_groups() {
    let folder = Folder::new("groups");
    let mut writer = Writer::create(&folder.0).unwrap();
    let bursts = 5_000;
    for number in 0..bursts {
        writer.burst(burst(number)).unwrap();
    }
    writer.finish(about_of(bursts), threads(), files()).unwrap();
    let read = Recording::read(&folder.0).unwrap();
    assert_eq!(read.calls.len(), bursts as usize * burst(0).calls.len());
}

#[test]
fn a_recording_is_not_overwritten() {
    let folder = Folder::new("twice");
    write(&folder);
    let refused = Writer::create(&folder.0).err().unwrap();
    assert!(
        refused.message.contains("holds a recording already"),
        "{refused}"
    );
}

#[test]
fn what_is_no_recording_is_refused() {
    let folder = Folder::new("none");
    assert!(refusal(&folder).message.contains("is no folder"));
    fs::create_dir(&folder.0).unwrap();
    assert!(refusal(&folder).message.contains("no about.json"));
    fs::write(folder.0.join("about.json"), "{\"format\": \"other\"}").unwrap();
    assert!(refusal(&folder).message.contains("format is not"));
    fs::write(folder.0.join("about.json"), "PAR1").unwrap();
    assert!(refusal(&folder).message.contains("expected value"));
}

#[test]
fn a_later_format_is_refused() {
    let folder = Folder::new("later");
    write(&folder);
    edit_about(&folder, |value| {
        value["version"] = (FORMAT_VERSION + 1).into();
        value["tables"] = Value::Null;
    });
    assert!(refusal(&folder).message.contains("is newer than"));
}

#[test]
fn damage_names_the_file() {
    let folder = Folder::new("damage");
    write(&folder);
    let states = folder.0.join("states.parquet");
    let whole = fs::read(&states).unwrap();
    fs::write(&states, &whole[..whole.len() / 2]).unwrap();
    let refused = refusal(&folder);
    assert!(refused.message.contains("states.parquet: has"), "{refused}");
    fs::remove_file(&states).unwrap();
    assert!(refusal(&folder).message.contains("cannot read"));
}

#[test]
fn rows_that_contradict_each_other_are_refused() {
    let (folder, other) = (Folder::new("rows-1"), Folder::new("rows-2"));
    let mut read = recording(&folder);
    assert_eq!(read.check(), Ok(()));
    let mut longer = read.clone();
    longer.blocks[0].completed_ns += 1000;
    let refused = longer.check().unwrap_err();
    assert!(refused.message.contains("in no burst"), "{refused}");
    read.states[3].waker = 77;
    read.write(&other.0).unwrap();
    let refused = refusal(&other);
    assert!(
        refused.message.contains("states: row 3: waker is 77"),
        "{refused}"
    );
}

#[test]
fn a_snapshot_is_the_recording_so_far() {
    let (whole, early, late) = (
        Folder::new("snapshot-whole"),
        Folder::new("snapshot-early"),
        Folder::new("snapshot-late"),
    );
    let mut writer = Writer::create(&whole.0).unwrap();
    // More calls than a row group holds, so that some are on disk and some wait.
    let bursts = 1 + (1 << 18) / burst(0).calls.len() as u64;
    for number in 0..bursts {
        writer.burst(burst(number)).unwrap();
        if number == 1 {
            let about = about_of(number + 1);
            writer
                .snapshot(&early.0, about, threads(), files())
                .unwrap();
        }
    }
    let about = about_of(bursts);
    writer
        .snapshot(&late.0, about.clone(), threads(), files())
        .unwrap();
    writer.finish(about, threads(), files()).unwrap();
    let read = Recording::read(&whole.0).unwrap();
    assert!(read.calls.len() > 1 << 18);
    assert_eq!(Recording::read(&late.0).unwrap(), read);
    let early = Recording::read(&early.0).unwrap();
    assert_eq!(early.states.len(), 2 * burst(0).states.len());
}
