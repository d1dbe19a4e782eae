//! Memory and time that a device of a terabyte takes, and that tracking a share of its units changes nothing.

#[path = "models/support.rs"]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use support::{Random, amplification, overwrite, ssd, units};
use tierwise_device::Device;
use tierwise_device::ssd::{Ssd, uniform_write_amplification};

struct Peak;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn count(bytes: usize) {
    let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
    MOST.fetch_max(held, Ordering::Relaxed);
}

// SAFETY: every call is passed on unchanged to the system's allocator; counting touches no memory of it.
unsafe impl GlobalAlloc for Peak {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise about `pointer` and `layout` is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static PEAK: Peak = Peak;

const MOST_BYTES: usize = 200_000_000;
const SPARE: f64 = 0.28;

/// A terabyte in superblocks of 32,768 units.
fn terabyte() -> Ssd {
    ssd(&[
        ("capacity_mb = 1000", "capacity_mb = 1_000_000"),
        ("dies_per_channel = 4", "dies_per_channel = 16"),
        ("pages_per_block = 16", "pages_per_block = 256"),
    ])
}

/// One test, since the count is of the whole process.
#[test]
fn a_terabyte_fits_in_little_memory_and_cleans_as_the_closed_form_says() {
    let start = Instant::now();
    let mut device = terabyte();
    let build = start.elapsed();
    // A quiet machine takes a small part of these times.
    assert!(build < Duration::from_secs(10), "built in {build:?}");
    device.precondition(support::WORN);
    let worn = start.elapsed();
    assert!(worn < Duration::from_secs(300), "worn in {worn:?}");
    let (all, mut random) = (units(&device), Random(1));
    let before = device.written();
    let count = all / 20;
    overwrite(&mut device, 0, count, || random.below(all));
    let measured = amplification(before, device.written());
    let formula = uniform_write_amplification(SPARE);
    let most = MOST.load(Ordering::Relaxed);
    println!(
        "built in {build:?}, worn in {worn:?}, {most} bytes at most, amplification {measured:.3}, closed form {formula:.3}"
    );
    assert!(most < MOST_BYTES, "{most} bytes");
    assert!((measured / formula - 1.0).abs() < 0.03, "{measured}");
}
