//! Devices as sysfs would show them, in a directory of the test's own.

use super::*;
use crate::host::tests::Sysfs;

#[test]
fn a_linear_volume_is_followed_to_the_sectors_of_its_disk() {
    let sys = Sysfs::new();
    let (_, partition) = sys.disk_with_partition();
    let volume = sys.volume_on(&partition);
    let layer = sys.layer(|_| Some("0 400 linear 8:1 100\n400 200 linear 8:1 700\n".into()));
    let stretch = |first_sector, sectors, offset_sectors| Stretch {
        name: "sda".into(),
        number: 8 << 20,
        first_sector,
        sectors,
        offset_sectors,
        told: true,
    };
    let expected = [stretch(2148, 400, 0), stretch(2748, 200, 400)];
    assert_eq!(layer.stretches(&volume), expected);
    let base = layer.under(libc::makedev(254, 0), None);
    let kinds: Vec<_> = layer
        .chain(&base)
        .into_iter()
        .map(|link| (link.depth, link.kind))
        .collect();
    let expected = [(0, "LVM volume"), (1, "partition"), (2, "disk")];
    assert_eq!(
        kinds,
        expected.map(|(depth, kind)| (depth, kind.to_owned()))
    );
    assert_eq!(layer.disks(&volume), BTreeSet::from(["sda".to_owned()]));
}

#[test]
fn a_striped_volume_and_one_whose_table_is_not_told_have_requests_that_are_not() {
    let sys = Sysfs::new();
    let (_, partition) = sys.disk_with_partition();
    let volume = sys.volume_on(&partition);
    for table in [
        |_: &str| Some("0 600 striped 2 128 8:1 0 8:2 0".to_owned()),
        |_: &str| None,
    ] {
        let stretches = sys.layer(table).stretches(&volume);
        assert_eq!((stretches.len(), stretches[0].told), (1, false));
        assert_eq!(stretches[0].number, 254 << 20);
    }
}

#[test]
fn a_disk_is_told_with_its_model_and_whether_it_rotates() {
    let sys = Sysfs::new();
    sys.disk_with_partition();
    let layer = sys.layer(|_| None);
    let chain = layer.chain(&layer.under(libc::makedev(8, 1), None));
    assert_eq!(chain[1].label.as_deref(), Some("BIG"));
    assert_eq!(
        (chain[1].rotational, chain[0].rotational),
        (Some(true), None)
    );
    assert_eq!(layer.under(libc::makedev(9, 9), None), Base::default());
}
