//! Paths meet the ends of their calls.

use crate::event::{Event, EventKind};
use crate::tracer::opens::{Open, Opens};

fn open(time_ns: u64, tid: i32, result: i64, path: &str) -> Open {
    Open {
        time_ns,
        pid: tid,
        tid,
        result,
        path: path.into(),
    }
}

fn exit(time_ns: u64, tid: i32, number: libc::c_long, result: i64) -> Event {
    let kind = EventKind::Exit {
        number: number as u32,
        result,
    };
    Event {
        time_ns,
        cpu: 0,
        tid,
        kind,
    }
}

fn told(opens: &mut Opens<'_>, event: &Event) -> Option<(i32, String)> {
    match opens.before(event)?.kind {
        EventKind::Opened { fd, path } => Some((fd, path)),
        _ => None,
    }
}

#[test]
fn the_same_number_stands_for_one_file_after_another() {
    let heard = [
        open(1_000, 5, 3, "/a"),
        open(9_000, 5, 3, "/b"),
        open(1_500, 6, 3, "/c"),
    ];
    let mut opens = Opens::new(&heard);
    assert_eq!(
        told(&mut opens, &exit(1_100, 5, libc::SYS_openat, 3)),
        Some((3, "/a".into()))
    );
    assert_eq!(
        told(&mut opens, &exit(1_400, 6, libc::SYS_openat, 3)),
        Some((3, "/c".into()))
    );
    assert_eq!(told(&mut opens, &exit(5_000, 5, libc::SYS_read, 3)), None);
    assert_eq!(
        told(&mut opens, &exit(9_100, 5, libc::SYS_openat, 3)),
        Some((3, "/b".into()))
    );
    assert_eq!((opens.seen, opens.unresolved), (3, 0));
}

#[test]
fn a_path_of_long_ago_is_not_taken_and_the_open_counts_as_unresolved() {
    let heard = [open(1_000, 5, 3, "/a")];
    let mut opens = Opens::new(&heard);
    assert_eq!(
        told(&mut opens, &exit(50_000_000, 5, libc::SYS_openat, 3)),
        None
    );
    assert_eq!(
        told(&mut opens, &exit(50_000_001, 5, libc::SYS_openat, -2)),
        None
    );
    assert_eq!((opens.seen, opens.unresolved), (1, 1));
}

#[test]
fn a_removal_names_its_file_without_a_number() {
    let heard = [open(1_000, 5, 0, "/gone")];
    let mut opens = Opens::new(&heard);
    let removed = told(&mut opens, &exit(1_100, 5, libc::SYS_unlinkat, 0));
    assert_eq!(removed, Some((-1, "/gone".into())));
    assert_eq!(opens.seen, 0);
}
