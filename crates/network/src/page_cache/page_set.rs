//! A sparse set of pages of a large space; only chunks with pages use memory.

use std::collections::BTreeMap;

const BITS: u64 = u64::BITS as u64;
const WORDS: usize = 64;
const CHUNK: u64 = BITS * WORDS as u64;

/// Consecutive pages, at least one of them in the set.
#[derive(Debug)]
struct Chunk {
    words: [u64; WORDS],
    count: u32,
}

/// A set of pages below `space`.
#[derive(Debug, Default)]
pub(crate) struct PageSet {
    space: u64,
    chunks: BTreeMap<u64, Box<Chunk>>,
}

impl PageSet {
    /// An empty set below `space` pages.
    pub(crate) fn new(space: u64) -> Self {
        Self {
            space: space.max(1),
            chunks: BTreeMap::new(),
        }
    }

    /// Adds or removes this many pages; returns the number changed. The first page is taken modulo the space;
    /// pages beyond its end are ignored.
    pub(crate) fn change(&mut self, first: u64, pages: u64, set: bool) -> u64 {
        let first = first % self.space;
        let end = first.saturating_add(pages).min(self.space);
        let mut changed = 0;
        let mut page = first;
        while page < end {
            if !set {
                // Skip to the next chunk: nothing to remove here.
                let there = self.chunks.range(page / CHUNK..).next();
                page = there.map_or(end, |(key, _)| page.max(key * CHUNK));
            }
            let chunk_end = end.min((page / CHUNK + 1) * CHUNK);
            changed += self.change_within(page, chunk_end, set);
            page = chunk_end;
        }
        changed
    }

    /// The same within one chunk.
    fn change_within(&mut self, first: u64, end: u64, set: bool) -> u64 {
        if first >= end {
            return 0;
        }
        let key = first / CHUNK;
        let chunk = self.chunks.entry(key).or_insert_with(|| {
            Box::new(Chunk {
                words: [0; WORDS],
                count: 0,
            })
        });
        let changed = chunk.change(first % CHUNK, end - key * CHUNK, set);
        if chunk.count == 0 {
            self.chunks.remove(&key);
        }
        changed
    }

    /// The first run of pages at or after a page, `longest` at most: its first page and its length.
    pub(crate) fn run(&self, from: u64, longest: u64) -> Option<(u64, u64)> {
        let found = self.chunks.range(from / CHUNK..).find_map(|(key, chunk)| {
            let at = chunk.first_at(from.saturating_sub(key * CHUNK))?;
            Some(key * CHUNK + at)
        })?;
        let mut length = 1;
        while length < longest && self.contains(found + length) {
            length += 1;
        }
        Some((found, length))
    }

    fn contains(&self, page: u64) -> bool {
        let chunk = self.chunks.get(&(page / CHUNK));
        chunk.is_some_and(|chunk| {
            let at = page % CHUNK;
            chunk.words[(at / BITS) as usize] >> (at % BITS) & 1 == 1
        })
    }
}

impl Chunk {
    fn change(&mut self, first: u64, end: u64, set: bool) -> u64 {
        let mut changed = 0;
        let mut at = first;
        while at < end {
            let (word, bit) = ((at / BITS) as usize, at % BITS);
            let part = (BITS - bit).min(end - at);
            let mask = (u64::MAX >> (BITS - part)) << bit;
            let before = self.words[word];
            self.words[word] = if set { before | mask } else { before & !mask };
            changed += (before ^ self.words[word]).count_ones();
            at += part;
        }
        if set {
            self.count += changed;
        } else {
            self.count -= changed;
        }
        u64::from(changed)
    }

    /// The first page of the set at or after a page.
    fn first_at(&self, from: u64) -> Option<u64> {
        let mut word = (from / BITS) as usize;
        let mut bits = self.words.get(word)? & (u64::MAX << (from % BITS));
        while bits == 0 {
            word += 1;
            bits = *self.words.get(word)?;
        }
        Some(word as u64 * BITS + u64::from(bits.trailing_zeros()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const SPACE: u64 = 5 * CHUNK - 100;

    proptest! {
        #[test]
        fn it_is_a_set(changes in prop::collection::vec((0..2 * SPACE, 0..3 * CHUNK, any::<bool>(), 0..SPACE), 1..20)) {
            let (mut pages, mut plain) = (PageSet::new(SPACE), BTreeSet::new());
            for (first, count, set, from) in changes {
                let first = first % SPACE;
                let before = plain.len();
                for page in first..(first + count).min(SPACE) {
                    if set { plain.insert(page); } else { plain.remove(&page); }
                }
                prop_assert_eq!(pages.change(first, count, set), before.abs_diff(plain.len()) as u64);
                let found = plain.range(from..).next().copied();
                let length = |first| (0..256).take_while(|at| plain.contains(&(first + at))).count() as u64;
                prop_assert_eq!(pages.run(from, 256), found.map(|first| (first, length(first))));
            }
        }
    }

    #[test]
    fn a_space_without_end_takes_no_memory() {
        let mut pages = PageSet::new(1 << 50);
        assert_eq!(pages.change(1 << 49, 300, true), 300);
        assert_eq!(pages.run(0, 256), Some((1 << 49, 256)));
        assert_eq!(pages.change((1 << 49) - 5, 400, false), 300);
        assert!(pages.chunks.is_empty());
    }
}
