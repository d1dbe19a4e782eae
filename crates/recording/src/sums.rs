//! The checksum of a file: of one that is read, and of one while it is written.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

/// Bytes that are read at once.
const PART_BYTES: usize = 64 << 10;

/// The checksum of the first bytes of a file.
pub(crate) fn checksum(file: &File, size_bytes: u64) -> io::Result<u32> {
    let (mut sum, mut part) = (crc32fast::Hasher::new(), vec![0; PART_BYTES]);
    let mut at = 0;
    while at < size_bytes {
        let left = usize::try_from(size_bytes - at).unwrap_or(PART_BYTES);
        let read = file.read_at(&mut part[..left.min(PART_BYTES)], at)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        sum.update(&part[..read]);
        at += read as u64;
    }
    Ok(sum.finalize())
}

/// Counts and sums up the bytes that pass through.
pub(crate) struct Summed<W> {
    inner: W,
    bytes: u64,
    sum: crc32fast::Hasher,
}

impl<W: Write> Summed<W> {
    pub fn new(inner: W) -> Self {
        Self {
            inner,
            bytes: 0,
            sum: crc32fast::Hasher::new(),
        }
    }

    /// The inner writer, the number of bytes, and their checksum.
    pub fn end(self) -> (W, u64, u32) {
        (self.inner, self.bytes, self.sum.finalize())
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.sum.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
