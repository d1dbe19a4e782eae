//! Map and blocks agree, whatever was written, padded and discarded.

use proptest::prelude::*;

use super::{CleaningParams, Ftl, NOTHING};
use crate::profile::{Params, Profile};
use crate::ssd::flash::Flash;

/// 1,000 units in superblocks of 8, of a device in which nothing else matters.
fn params(separate_moves: bool) -> (Flash, CleaningParams) {
    let text = format!(
        "kind = \"ssd\"\nsummary = \"test\"\ncapacity_mb = 4\nchannels = 2\nstripe_kib = 4\nread_us = 0\nprogram_us = 0\n\
         read_overhead_us = 0\nwrite_overhead_us = 0\nflush_us = 0\nlink_mb_per_s = 0\nwrite_cache_kib = 0\n\
         power_loss_protection = false\n[cleaning]\npages_per_block = 4\nerase_us = 0\nspare_share = 0.1\n\
         separate_moves = {separate_moves}\n[source]\n{}",
        [
            "capacity_mb",
            "channels",
            "stripe_kib",
            "read_us",
            "program_us",
            "read_overhead_us",
            "write_overhead_us",
            "flush_us",
            "link_mb_per_s",
            "write_cache_kib",
            "cleaning",
        ]
        .map(|key| format!("{key} = \"made for the test\"\n"))
        .concat()
    );
    match Profile::parse(&text, "test.toml")
        .expect("a valid profile")
        .params()
    {
        Params::Ssd(params) => (
            params.flash(),
            params.cleaning.clone().expect("a translation layer"),
        ),
        _ => unreachable!("the profile is of an SSD"),
    }
}

fn check(ftl: &Ftl) -> Result<(), TestCaseError> {
    let slots = (0..ftl.sample.tracked()).map(|unit| (unit as u32, ftl.slots.get(unit as usize)));
    let mapped: Vec<_> = slots.filter(|(_, slot)| *slot != NOTHING).collect();
    prop_assert_eq!(mapped.len() as u64, ftl.mapped);
    let mut valid = vec![0; ftl.blocks.valid_counts().len()];
    for (unit, slot) in mapped {
        prop_assert_eq!(
            ftl.units.get(slot as usize - 1),
            unit + 1,
            "the slot holds another unit"
        );
        valid[(slot as usize - 1) / ftl.block_units as usize] += 1;
    }
    prop_assert_eq!(&valid, ftl.blocks.valid_counts());
    for &block in &ftl.free {
        prop_assert_eq!(valid[block as usize], 0, "a free block holds units");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn map_and_blocks_agree(
        separate in any::<bool>(),
        worn in any::<bool>(),
        steps in prop::collection::vec((0..8_u8, 0..1000_u64, 1..100_u64), 1..300),
    ) {
        let (flash, cleaning) = params(separate);
        let mut ftl = Ftl::new(&flash, &cleaning);
        if worn {
            ftl.wear_in(0.5);
        }
        for (kind, start, length) in steps {
            match kind {
                0 => ftl.discard(start..start + length),
                1 => ftl.pad(length % 8),
                _ => ftl.write(start..start + length),
            }
        }
        check(&ftl)?;
    }
}
