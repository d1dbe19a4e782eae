//! Sizes that the kernel fixes.

/// Bytes of a sector, the unit of a block request's position and length.
pub(crate) const SECTOR_BYTES: u64 = 512;
/// Bytes of a page of the page cache on x86-64, and on most aarch64 kernels; others have 16 or 64 KiB.
pub(crate) const PAGE_BYTES: u64 = 4096;
pub(crate) const PAGE_SECTORS: u64 = PAGE_BYTES / SECTOR_BYTES;
