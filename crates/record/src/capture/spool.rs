//! What the kernel gave in one burst, as it came: pages by instance and core, to be decoded later.

use super::page;

/// Pages of one core of one instance, one after the other, each cut to what it holds.
pub struct Stream {
    /// Which core.
    pub cpu: u16,
    chunks: Vec<Vec<u8>>,
}

/// Pages are kept in pieces of this size, so that growing never copies.
const CHUNK_BYTES: usize = 1 << 20;

impl Stream {
    /// An empty one.
    pub fn new(cpu: u16) -> Self {
        Self {
            cpu,
            chunks: Vec::new(),
        }
    }

    /// Appends a page; one that is none is dropped.
    pub fn push(&mut self, page: &[u8]) {
        let Some(used) = page::used_bytes(page).filter(|&used| used > page::HEADER_BYTES) else {
            return;
        };
        let full = |chunk: &Vec<u8>| chunk.len() + used > chunk.capacity();
        if self.chunks.last().is_none_or(full) {
            self.chunks.push(Vec::with_capacity(CHUNK_BYTES.max(used)));
        }
        let chunk = self.chunks.last_mut().expect("one was pushed");
        chunk.extend_from_slice(&page[..used]);
    }

    /// How many bytes it holds.
    pub fn bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.len() as u64).sum()
    }

    /// Its records in the order they were made.
    pub fn records(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let pages = self.chunks.iter().flat_map(|chunk| Pages { rest: chunk });
        pages.flat_map(page::Records::of)
    }
}

/// Cuts a chunk into its pages.
struct Pages<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Pages<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let used = page::used_bytes(self.rest)?;
        let (page, rest) = self.rest.split_at(used);
        self.rest = rest;
        Some(page)
    }
}
