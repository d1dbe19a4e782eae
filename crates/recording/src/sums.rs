//! A file writer that keeps the length and the checksum.

use std::io::{self, Write};

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
