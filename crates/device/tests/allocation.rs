//! No model allocates per request once it is warm.

#[path = "models/support.rs"]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use tierwise_device::{Completion, Device, Op, Request};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator; counting touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise about `pointer` and `layout` is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise about `pointer`, `layout` and `size` is passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn serve(
    device: &mut dyn Device,
    completions: &mut Vec<Completion>,
    now: &mut u64,
    state: &mut u64,
    count: u64,
) {
    for _ in 0..count {
        for id in 0..16 {
            *state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let op = [Op::Read, Op::Write, Op::Write, Op::Flush][(*state >> 62) as usize];
            let sector = (*state >> 20) % (device.capacity_sectors() - 64);
            device.submit(*now, id, Request::new(op, sector, 8));
        }
        while let Some(event) = device.next_event() {
            *now = event;
            completions.clear();
            device.advance(*now, completions);
        }
    }
}

/// One test for all models, since the count is of the whole process.
#[test]
fn warm_models_do_not_allocate() {
    for name in [
        "hdd-7k2",
        "hdd-7k2-sata-2009",
        "hdd-10k-18g-fc",
        "ssd-sata-dc",
        "ssd-nvme-dc",
        "ssd-nvme-consumer",
        "ssd-optane",
        "ssd-sata-slc-2008",
        "ssd-dram-fc",
        "volume-aws-st1",
        "volume-gcp-pd-ssd",
        "array-raid0-12x-ssd-sata-slc-2008",
        "array-raid1-2x-ssd-nvme-dc",
        "array-raid5-7x-hdd-7k2-200g-ata",
        "array-raid5-8x-hdd-10k-sas",
        "array-raid10-8x-hdd-7k2-20t-nearline",
    ] {
        let mut device = support::shipped(name).build(1);
        let (mut completions, mut now, mut state) = (Vec::with_capacity(64), 0, 1);
        serve(&mut device, &mut completions, &mut now, &mut state, 100);
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        serve(&mut device, &mut completions, &mut now, &mut state, 2_000);
        let allocated = ALLOCATIONS.load(Ordering::Relaxed) - before;
        assert_eq!(
            allocated, 0,
            "{name} allocated {allocated} times in 32,000 requests"
        );
    }
}
