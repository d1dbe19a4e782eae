//! Storage for the bytes of a disk.

use std::io;
use std::ptr::NonNull;

/// The content of a device, addressed in bytes.
///
/// Ranges lie within the size; the caller ensures that. Requests that overlap in space and time may see parts
/// of each other, as on a real disk.
pub trait Store {
    /// The bytes of a range; unwritten bytes are zero.
    fn read(&self, offset: u64, length: usize) -> &[u8];

    /// Replaces the bytes of a range.
    fn write(&self, offset: u64, data: &[u8]);

    /// Forgets a range, which reads as zeros afterwards.
    fn discard(&self, offset: u64, length: u64);
}

/// Anonymous memory that costs nothing until it is written.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    size: usize,
}

impl Mapping {
    /// Reserves addresses for `size` bytes; no memory yet.
    pub fn new(size: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), size, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start =
            NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapping at address 0"))?;
        Ok(Self { start, size })
    }

    /// The address of a range.
    pub fn at(&self, offset: u64, length: u64) -> *mut u8 {
        assert!(
            offset + length <= self.size as u64,
            "a range within the store or buffer"
        );
        // SAFETY: the offset is within the mapping.
        unsafe { self.start.as_ptr().add(offset as usize) }
    }

    /// The bytes of a range.
    pub fn read(&self, offset: u64, length: usize) -> &[u8] {
        // SAFETY: the range is within the mapping, which lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.at(offset, length as u64), length) }
    }

    /// Replaces the bytes of a range.
    pub fn write(&self, offset: u64, data: &[u8]) {
        let target = self.at(offset, data.len() as u64);
        // SAFETY: the range is within the mapping, and `data` is not part of it.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), target, data.len()) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.size) };
    }
}

/// Bytes in memory.
pub struct MemoryStore {
    memory: Mapping,
    page_bytes: u64,
}

/// `MADV_DONTNEED` for memory that is locked, since Linux 5.18.
const MADV_DONTNEED_LOCKED: libc::c_int = 24;

impl MemoryStore {
    /// Reserves addresses for `size_bytes`; no memory yet.
    pub fn new(size_bytes: u64) -> io::Result<Self> {
        let size = usize::try_from(size_bytes).map_err(io::Error::other)?;
        // SAFETY: takes no pointers.
        let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        Ok(Self {
            memory: Mapping::new(size)?,
            page_bytes: page_bytes.try_into().map_err(io::Error::other)?,
        })
    }

    fn drop_pages(&self, offset: u64, length: u64) -> bool {
        let start = self.memory.at(offset, length).cast();
        // SAFETY: whole pages within the mapping; they read as zeros afterwards.
        unsafe { libc::madvise(start, length as usize, MADV_DONTNEED_LOCKED) == 0 }
    }

    fn clear(&self, offset: u64, length: u64) {
        // SAFETY: the range is within the mapping.
        unsafe { std::ptr::write_bytes(self.memory.at(offset, length), 0, length as usize) };
    }
}

impl Store for MemoryStore {
    fn read(&self, offset: u64, length: usize) -> &[u8] {
        self.memory.read(offset, length)
    }

    fn write(&self, offset: u64, data: &[u8]) {
        self.memory.write(offset, data);
    }

    fn discard(&self, offset: u64, length: u64) {
        let (first, last) = whole_pages(offset, length, self.page_bytes);
        self.clear(offset, first - offset);
        self.clear(last, offset + length - last);
        if last > first && !self.drop_pages(first, last - first) {
            self.clear(first, last - first);
        }
    }
}

/// Where the pages that lie wholly in a range begin and end. The kernel drops whole pages only, and would
/// also drop a page that lies in the range only in part.
fn whole_pages(offset: u64, length: u64, page_bytes: u64) -> (u64, u64) {
    let first = offset.next_multiple_of(page_bytes).min(offset + length);
    let last = ((offset + length) / page_bytes * page_bytes).max(first);
    (first, last)
}

#[cfg(test)]
mod tests {
    use super::whole_pages;

    #[test]
    fn a_page_that_lies_in_part_in_a_range_is_kept() {
        assert_eq!(whole_pages(4096, 8192, 4096), (4096, 12_288));
        assert_eq!(whole_pages(100, 9000, 4096), (4096, 8192));
        // aarch64 kernels may have pages of 16 or 64 KiB.
        assert_eq!(whole_pages(0, 69_632, 65_536), (0, 65_536));
        for (offset, length) in [(0, 4096), (4096, 65_536), (65_535, 2)] {
            let (first, last) = whole_pages(offset, length, 65_536);
            assert_eq!(first, last);
        }
    }
}
