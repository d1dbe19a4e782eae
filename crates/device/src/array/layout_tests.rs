use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn level() -> impl Strategy<Value = (Level, u64)> {
    prop_oneof![
        (2_u64..20).prop_map(|n| (Level::Raid0, n)),
        (2_u64..5).prop_map(|n| (Level::Raid1, n)),
        (2_u64..10).prop_map(|n| (Level::Raid10, 2 * n)),
        (3_u64..20).prop_map(|n| (Level::Raid5, n)),
    ]
}

proptest! {
    #[test]
    fn every_sector_of_data_has_a_place_of_its_own(
        (level, members) in level(), chunk in 1_u64..40, rows in 1_u64..25, spare in 0_u64..40,
    ) {
        let layout = Layout::new(level, members, chunk, rows * chunk + spare.min(chunk - 1));
        let mut places = BTreeSet::new();
        for sector in 0..layout.capacity() {
            let Spot { row, column, offset } = layout.spot(sector);
            let lane = layout.lane(row, column);
            let place = row * layout.chunk() + offset;
            prop_assert!(place < layout.member_sectors());
            prop_assert!((lane + 1) * layout.copies() <= layout.members());
            prop_assert!(layout.parity(row) != Some(lane), "sector {} shares a member with its parity", sector);
            prop_assert!(places.insert((lane, place)), "two sectors at one place");
        }
        let parity = if level == Level::Raid5 { layout.member_sectors() } else { 0 };
        let lanes = layout.members() / layout.copies();
        prop_assert_eq!(places.len() as u64 + parity, lanes as u64 * layout.member_sectors());
    }

    #[test]
    fn extents_hold_each_sector_of_a_range_once(
        (level, members) in level(), chunk in 1_u64..40, from in 0.0..1.0, length in 0.0..1.0,
    ) {
        let layout = Layout::new(level, members, chunk, 20 * chunk);
        let sector = (from * layout.capacity() as f64) as u64;
        let sectors = 1 + (length * (layout.capacity() - sector - 1) as f64) as u64;
        let mut extents = Extents::for_lanes(1);
        layout.data(sector, sectors, &mut extents);
        let held: BTreeSet<(usize, u64)> = extents
            .iter()
            .flat_map(|extent| (extent.start..extent.end).map(|place| (extent.lane, place)))
            .collect();
        let wanted: BTreeSet<(usize, u64)> = (sector..sector + sectors)
            .map(|sector| {
                let spot = layout.spot(sector);
                (layout.lane(spot.row, spot.column), spot.row * layout.chunk() + spot.offset)
            })
            .collect();
        prop_assert_eq!(extents.iter().map(|extent| extent.end - extent.start).sum::<u64>(), sectors);
        prop_assert_eq!(held, wanted);
    }
}

#[test]
fn parity_rotates_left_and_data_follows_it() {
    let layout = Layout::new(Level::Raid5, 4, 1, 4);
    let row = |row| -> Vec<usize> { (0..3).map(|column| layout.lane(row, column)).collect() };
    let parity: Vec<_> = (0..4).map(|row| layout.parity(row)).collect();
    assert_eq!(parity, [Some(3), Some(2), Some(1), Some(0)]);
    assert_eq!(
        [row(0), row(1), row(2), row(3)],
        [[0, 1, 2], [3, 0, 1], [2, 3, 0], [1, 2, 3]]
    );
}

#[test]
fn a_long_read_of_a_stripe_is_one_command_a_member() {
    let layout = Layout::new(Level::Raid0, 4, 16, 1600);
    let mut extents = Extents::for_lanes(4);
    layout.data(8, 640, &mut extents);
    assert_eq!(extents.len(), 4);
}
