use super::super::level::Level;
use super::*;

const CHUNK: u64 = 128;

/// Sectors that a write of `start..end` within row 0 of a RAID 5 reads and writes, by member.
fn work(members: u64, start: u64, end: u64, failed: Option<usize>) -> [Vec<(usize, u64)>; 3] {
    let layout = Layout::new(Level::Raid5, members, CHUNK, CHUNK * 10);
    let mut touched = vec![Touched::default(); layout.columns() as usize];
    layout.touch(0, start, end, &mut touched);
    let health = Health::of(failed);
    let row = Row::new(&layout, &health, 0, &touched).expect("a level with parity");
    let sectors = |find: &dyn Fn(&mut Extents)| {
        let mut extents = Extents::for_lanes(members as usize);
        find(&mut extents);
        let mut all: Vec<_> = extents.iter().map(|e| (e.lane, e.end - e.start)).collect();
        all.sort_unstable();
        all
    };
    [
        sectors(&|out| row.read_before_write(out)),
        sectors(&|out| row.write(out)),
        sectors(&|out| row.read(out)),
    ]
}

#[test]
fn a_small_write_reads_and_writes_data_and_parity() {
    let [reads, writes, _] = work(7, 136, 152, None);
    assert_eq!(reads, [(1, 16), (6, 16)]);
    assert_eq!(writes, [(1, 16), (6, 16)]);
}

#[test]
fn a_write_to_most_of_a_row_reads_the_rest() {
    let [reads, writes, _] = work(7, 0, 5 * CHUNK, None);
    assert_eq!(reads, [(5, CHUNK)]);
    assert_eq!(writes.len(), 6);
    let [reads, _, _] = work(7, 16, 5 * CHUNK, None);
    assert_eq!(reads, [(0, 16), (5, CHUNK)], "the head of a chunk too");
}

#[test]
fn a_whole_row_is_written_without_reads() {
    let [reads, writes, _] = work(7, 0, 6 * CHUNK, None);
    assert_eq!(reads, []);
    assert_eq!(writes, (0..7).map(|m| (m, CHUNK)).collect::<Vec<_>>());
}

#[test]
fn three_members_reconstruct_only_if_that_is_less() {
    let [reads, _, _] = work(3, 0, 8, None);
    assert_eq!(reads, [(1, 8)], "one read instead of two");
    let [reads, _, _] = work(4, 0, 8, None);
    assert_eq!(reads, [(0, 8), (3, 8)], "equal: read-modify-write");
}

#[test]
fn without_its_parity_a_row_is_just_written() {
    let [reads, writes, _] = work(7, 0, 16, Some(6));
    assert_eq!((reads, writes), (vec![], vec![(0, 16)]));
}

#[test]
fn a_write_to_the_failed_member_changes_parity_from_all_the_rest() {
    let [reads, writes, _] = work(7, 0, 16, Some(0));
    assert_eq!(reads, (1..6).map(|m| (m, 16)).collect::<Vec<_>>());
    assert_eq!(writes, [(6, 16)]);
    let [reads, writes, _] = work(7, CHUNK - 8, CHUNK + 8, Some(0));
    assert_eq!(reads, (1..7).map(|m| (m, CHUNK)).collect::<Vec<_>>());
    assert_eq!(writes, [(1, 8), (6, CHUNK)]);
}

#[test]
fn a_write_beside_the_failed_member_needs_no_more_reads() {
    let [reads, writes, _] = work(7, CHUNK, 5 * CHUNK, Some(0));
    assert_eq!(reads.len(), 5, "the four replaced and their parity");
    assert_eq!(writes.len(), 5);
}

#[test]
fn a_read_of_the_failed_member_takes_all_others() {
    let [_, _, reads] = work(7, 8, 24, Some(0));
    assert_eq!(reads, (1..7).map(|m| (m, 16)).collect::<Vec<_>>());
    let [_, _, reads] = work(7, CHUNK, CHUNK + 16, Some(0));
    assert_eq!(reads, [(1, 16)]);
}

#[test]
fn a_gap_between_dirty_sectors_is_read_to_reconstruct() {
    let layout = Layout::new(Level::Raid5, 3, CHUNK, CHUNK * 10);
    let mut touched = vec![Touched::default(); 2];
    touched[0].add(0, 8);
    touched[0].add(64, 128);
    touched[1].add(0, 128);
    let row = Row::new(&layout, &Health::of(None), 0, &touched).map(|row| {
        let mut reads = Extents::for_lanes(3);
        row.read_before_write(&mut reads);
        reads
            .iter()
            .map(|e| (e.lane, e.end - e.start))
            .collect::<Vec<_>>()
    });
    assert_eq!(row, Some(vec![(0, 128)]));
}
