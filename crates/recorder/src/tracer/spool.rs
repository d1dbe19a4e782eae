//! Raw data of one burst: pages of the kernel's ring buffers by instance and core, to be decoded later.
//!
//! A page, as `trace_pipe_raw` gives it, has a header, then records with time deltas.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::iter;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::Mmap;

/// Pages are kept in pieces of this size, so that growing never copies.
const CHUNK_BYTES: usize = 1 << 20;

/// Pages of one core of one instance, one after the other, each cut to its used length.
#[derive(Default)]
pub struct Stream {
    pub cpu: u16,
    full: Vec<Chunk>,
    last: Vec<u8>,
    stored: Option<Arc<Mmap>>,
}

enum Chunk {
    Memory(Vec<u8>),
    File { offset: usize, length: usize },
}

/// Storage for pieces of streams: memory, and beyond a limit a file without a name, that ends with its burst.
pub struct Spool {
    memory_left: usize,
    file: File,
    written: usize,
}

impl Spool {
    /// Keeps up to `memory` bytes in memory, the rest in a file of `directory`.
    pub fn new(memory: usize, directory: &Path) -> io::Result<Self> {
        Ok(Self {
            memory_left: memory,
            file: unnamed_file(directory)?,
            written: 0,
        })
    }

    fn keep(&mut self, chunk: Vec<u8>) -> io::Result<Chunk> {
        let length = chunk.len();
        if let Some(left) = self.memory_left.checked_sub(length) {
            self.memory_left = left;
            return Ok(Chunk::Memory(chunk));
        }
        let offset = self.written;
        self.file.write_all(&chunk)?;
        self.written += length;
        Ok(Chunk::File { offset, length })
    }

    /// Lets streams read what is in the file.
    pub fn finish(self, streams: &mut [Stream]) -> io::Result<()> {
        if self.written == 0 {
            return Ok(());
        }
        // SAFETY: the file has no name, and nobody writes to it any more.
        let mapping = Arc::new(unsafe { Mmap::map(&self.file) }?);
        for stream in streams {
            stream.stored = Some(Arc::clone(&mapping));
        }
        Ok(())
    }
}

/// A file that is gone when it is closed, however its program ends.
fn unnamed_file(directory: &Path) -> io::Result<File> {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let path = directory.join(format!("events-{}-{number}", std::process::id()));
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    fs::remove_file(path)?;
    Ok(file)
}

impl Stream {
    pub fn new(cpu: u16) -> Self {
        Self {
            cpu,
            ..Self::default()
        }
    }

    /// Appends a page; one that is none, or empty, is dropped.
    pub fn push(&mut self, page: &[u8], spool: &mut Spool) -> io::Result<()> {
        let Some(used) = used_bytes(page).filter(|&used| used > HEADER_BYTES) else {
            return Ok(());
        };
        if self.last.len() + used > self.last.capacity() {
            let empty = Vec::with_capacity(CHUNK_BYTES.max(used));
            let full = std::mem::replace(&mut self.last, empty);
            self.full.push(spool.keep(full)?);
        }
        self.last.extend_from_slice(&page[..used]);
        Ok(())
    }

    pub fn bytes(&self) -> u64 {
        self.chunks().map(|chunk| chunk.len() as u64).sum()
    }

    /// Its records in the order they were made.
    pub fn records(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let pages = self
            .chunks()
            .flat_map(|mut rest| iter::from_fn(move || rest.split_off(..used_bytes(rest)?)));
        pages.flat_map(Records::of)
    }

    fn chunks(&self) -> impl Iterator<Item = &[u8]> {
        let full = self.full.iter().map(|chunk| match chunk {
            Chunk::Memory(bytes) => bytes,
            Chunk::File { offset, length } => match &self.stored {
                Some(mapping) => &mapping[*offset..][..*length],
                None => &[],
            },
        });
        full.chain([&self.last[..]])
    }
}

/// Length of the page's header: a time and how much is committed.
const HEADER_BYTES: usize = 16;

const LENGTH_MASK: u64 = (1 << 27) - 1;

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

/// Bits of a whole time that an absolute time stamp leaves to the page's own.
const STAMP_BITS: u32 = 59;

/// The records of one page, each with its time; ends at the first that is not whole.
pub struct Records<'a> {
    rest: &'a [u8],
    time_ns: u64,
}

/// Number of bytes in use in a page, with its header; none for a page that is not one.
pub fn used_bytes(page: &[u8]) -> Option<usize> {
    let committed = usize::try_from(word(page, 8)? & LENGTH_MASK).ok()?;
    let used = HEADER_BYTES + committed;
    (used <= page.len()).then_some(used)
}

impl<'a> Records<'a> {
    /// Of a page, its header first.
    pub fn of(page: &'a [u8]) -> Self {
        let used = used_bytes(page).unwrap_or(0);
        Self {
            rest: page.get(HEADER_BYTES..used).unwrap_or_default(),
            time_ns: word(page, 0).unwrap_or(0),
        }
    }

    /// Takes `length` bytes and returns those after the record's head.
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length.next_multiple_of(4))?;
        self.rest = rest;
        taken.get(4..)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let head = half_word(self.rest, 0)?;
            let (kind, delta) = (head & 31, u64::from(head >> 5));
            match kind {
                PADDING if delta == 0 => return None,
                PADDING => {
                    self.time_ns += delta;
                    let length = half_word(self.rest, 4)? as usize;
                    self.take(length.checked_add(4)?)?;
                }
                TIME_EXTEND => {
                    self.time_ns += delta | u64::from(half_word(self.rest, 4)?) << 27;
                    self.take(8)?;
                }
                TIME_STAMP => {
                    let stamp = delta | u64::from(half_word(self.rest, 4)?) << 27;
                    self.time_ns = self.time_ns >> STAMP_BITS << STAMP_BITS | stamp;
                    self.take(8)?;
                }
                0 => {
                    self.time_ns += delta;
                    let length = half_word(self.rest, 4)? as usize;
                    let record = self.take(length.checked_add(4)?)?;
                    return Some((self.time_ns, record.get(4..)?));
                }
                words => {
                    self.time_ns += delta;
                    let record = self.take(4 + 4 * words as usize)?;
                    return Some((self.time_ns, record));
                }
            }
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn half_word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}
