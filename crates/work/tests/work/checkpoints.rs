//! An engine that moves pages from its log to their places when there are so many (SQLite's write-ahead log).

use std::collections::BTreeMap;

use crate::made::{Made, count, cpu_ns, work_of};
use tierwise_recording::{CallKind, NONE, Recording, Role, ThreadClass};
use tierwise_work::Step;

const COMMITS: u64 = 40;
/// Commits from checkpoint to checkpoint.
const EACH: u64 = 5;
const FRAME: u64 = 4120;

fn frame(number: u64) -> u64 {
    32 + (number - 1) * FRAME
}

/// A session whose every commit changes the first page and another one; after each fifth the log is moved, and begins
/// anew.
fn writer() -> Recording {
    let mut made = Made::new("sqlite");
    let session = made.thread(ThreadClass::Session);
    let (log, data) = made.log_and_data();
    let mut doing = made.at(session, 0);
    for commit in 0..COMMITS {
        doing.cpu(50_000);
        let since = commit % EACH;
        if since == 0 {
            doing.write(log, 0, 32);
            doing.sync(log, 10_000);
        }
        for number in [2 * since + 1, 2 * since + 2] {
            doing.write(log, frame(number), 24);
            doing.write(log, frame(number) + 24, 4096);
        }
        doing.sync(log, 20_000).cpu(2_000);
        if since == EACH - 1 {
            doing.sync(log, 10_000);
            let latest = (0..EACH).map(|before| (2 * before + 2, commit - since + before + 1));
            for (number, page) in latest.chain([(2 * since + 1, 0)]) {
                doing.read(log, (frame(number) + 24, 4096), 0);
                doing.cpu(100_000);
                doing.write(data, page * 4096, 4096);
            }
            doing.call(CallKind::Resize, data, (1 << 20, 0), (0, NONE));
            doing.sync(data, 1_000_000).cpu(2_000);
        }
    }
    let mut recording = made.finish();
    let settings = [
        ("journal_mode", "wal"),
        ("wal_autocheckpoint", "10"),
        ("page_size", "4096"),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    recording.about.settings = settings.into();
    recording
}

#[test]
fn each_commit_has_its_pages() {
    let work = work_of(&writer());
    let rules = work.checkpoints.expect("checkpoints");
    assert_eq!((rules.after_pages, rules.frame_bytes), (10, FRAME as u32));
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    let mut commits = 0;
    for step in &work.sessions[0].steps {
        if let Step::Frames { count } = *step {
            let pages = &rules.pages[2 * commits as usize..][..count as usize];
            assert!(pages.len() == 2 && pages[0] != pages[1], "{pages:?}");
            pages
                .iter()
                .for_each(|page| *counts.entry(*page).or_default() += 1);
            commits += 1;
        }
    }
    assert_eq!(commits, COMMITS);
    assert_eq!(counts.len() as u64, COMMITS + 1);
    // The page that came last each time is the one that the log held all the time, for the most part.
    let most = counts.values().max().copied().unwrap_or(0);
    assert!(most > COMMITS / 2, "{counts:?}");
}

#[test]
fn what_a_checkpoint_did_is_no_step() {
    let work = work_of(&writer());
    let rules = work.checkpoints.as_ref().expect("checkpoints");
    let steps = &work.sessions[0].steps;
    let moves = |step: &Step| {
        use Step::{CachedRead, Forget, Sync, Write};
        matches!(
            step,
            Sync { .. } | Write { .. } | CachedRead { .. } | Forget { .. }
        )
    };
    assert_eq!(count(steps, moves), 0);
    let ran_ns = cpu_ns(steps);
    assert!(
        (COMMITS * 50_000..COMMITS * 60_000).contains(&ran_ns),
        "{ran_ns}"
    );
    // 100 µs and two calls a page.
    assert!(
        (80_000..110_000).contains(&rules.page_ns),
        "{}",
        rules.page_ns
    );
    assert!(rules.scripts.len() as u64 == COMMITS / EACH);
    assert!((0.99..=1.01).contains(&work.observed.commits_per_flush));
}

#[test]
fn without_such_a_log_there_are_no_rules() {
    let mut recording = writer();
    recording.about.settings.clear();
    let work = work_of(&recording);
    assert!(work.checkpoints.is_none());
    let syncs = |step: &Step| matches!(step, Step::Sync { role, .. } if *role == Role::Data);
    assert_eq!(count(&work.sessions[0].steps, syncs) as u64, COMMITS / EACH);
}
