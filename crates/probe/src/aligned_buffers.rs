//! Aligned memory with content that no device can compress or recognise.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::slice;

use tierwise_device::random::{GOLDEN_GAMMA, mix_bits};

/// Suits every device: none has a logical block above a page.
const ALIGN_BYTES: usize = 4096;

/// Equal buffers, one for each request in flight.
#[derive(Debug)]
pub(crate) struct Buffers {
    start: *mut u8,
    layout: Layout,
    each_bytes: usize,
    stamp: u64,
}

// SAFETY: the memory belongs to this value alone.
unsafe impl Send for Buffers {}

impl Buffers {
    /// `count` buffers of `each_bytes`, filled with pseudo-random bytes of `seed`.
    pub(crate) fn new(count: usize, each_bytes: usize, seed: u64) -> Self {
        let each_bytes = each_bytes.next_multiple_of(ALIGN_BYTES);
        let layout =
            Layout::from_size_align(count.max(1) * each_bytes.max(ALIGN_BYTES), ALIGN_BYTES)
                .expect("a few megabytes");
        // SAFETY: the layout is not empty.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        let mut buffers = Self {
            start,
            layout,
            each_bytes,
            stamp: random_word(seed),
        };
        buffers.scatter();
        buffers.fill(seed);
        buffers
    }

    /// Address of one buffer.
    pub(crate) fn address(&mut self, slot: usize) -> *mut u8 {
        assert!((slot + 1) * self.each_bytes <= self.layout.size());
        // SAFETY: inside the allocation, as just checked.
        unsafe { self.start.add(slot * self.each_bytes) }
    }

    /// Makes every block of a buffer unlike all blocks written before, at a fraction of the cost of new
    /// bytes.
    pub(crate) fn renew(&mut self, slot: usize, bytes: usize) {
        self.stamp = self.stamp.wrapping_add(1);
        let stamp = self.stamp;
        let start = slot * self.each_bytes;
        let buffer = &mut self.bytes()[start..start + bytes];
        for (block, number) in buffer.chunks_mut(ALIGN_BYTES).zip(0..) {
            let words = block.len().min(8);
            block[..words]
                .copy_from_slice(&random_word(stamp ^ (number << 48)).to_le_bytes()[..words]);
        }
    }

    /// Makes the kernel place the pages in random order, as in a database that has run for long. Touched in
    /// order they would often be contiguous, and requests of 1 MiB run up to twice as fast: by luck.
    fn scatter(&mut self) {
        let pages = self.layout.size() / ALIGN_BYTES;
        let mut order: Vec<usize> = (0..pages).collect();
        order.sort_unstable_by_key(|&page| random_word(page as u64));
        for page in order {
            self.bytes()[page * ALIGN_BYTES] = 1;
        }
    }

    fn fill(&mut self, seed: u64) {
        for (word, number) in self.bytes().chunks_exact_mut(8).zip(seed..) {
            word.copy_from_slice(&random_word(number).to_le_bytes());
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the allocation is initialised, belongs to this value and is borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.start, self.layout.size()) }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and no request is in flight once its engine has ended.
        unsafe { dealloc(self.start, self.layout) }
    }
}

/// One good random word for each number.
fn random_word(number: u64) -> u64 {
    mix_bits(number.wrapping_mul(GOLDEN_GAMMA).wrapping_add(GOLDEN_GAMMA))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_uses_all_byte_values_alike() {
        let mut buffers = Buffers::new(2, 1 << 16, 7);
        let mut counts = [0u32; 256];
        buffers
            .bytes()
            .iter()
            .for_each(|&byte| counts[usize::from(byte)] += 1);
        // 512 a value on average, deviation 23: six deviations either way.
        assert!(counts.iter().all(|count| (376..=648).contains(count)));
    }

    #[test]
    fn renewed_blocks_differ_from_before_and_from_each_other() {
        let mut buffers = Buffers::new(1, 3 * ALIGN_BYTES, 1);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..100 {
            buffers.renew(0, 3 * ALIGN_BYTES);
            seen.extend(buffers.bytes().chunks(ALIGN_BYTES).map(<[u8]>::to_vec));
        }
        assert_eq!(seen.len(), 300);
    }

    #[test]
    fn addresses_are_aligned() {
        let mut buffers = Buffers::new(3, 512, 1);
        assert!((0..3).all(|slot| (buffers.address(slot) as usize).is_multiple_of(ALIGN_BYTES)));
    }
}
