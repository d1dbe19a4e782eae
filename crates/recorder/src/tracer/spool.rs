//! Raw data of one burst: pages by instance and core, to be decoded later.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::mapping::{Access, Mapping};
use super::page;

/// Pages are kept in pieces of this size, so that growing never copies.
const CHUNK_BYTES: usize = 1 << 20;

/// Pages of one core of one instance, one after the other, each cut to its used length.
pub struct Stream {
    /// Which core.
    pub cpu: u16,
    full: Vec<Chunk>,
    last: Vec<u8>,
    stored: Option<Arc<Mapping>>,
}

/// A piece of a stream.
enum Chunk {
    Memory(Vec<u8>),
    /// In the spool's file.
    File {
        offset: usize,
        length: usize,
    },
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
        let mapping = Mapping::new(self.file.as_fd(), self.written, Access::Read, 0)?;
        let mapping = Arc::new(mapping);
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
    /// An empty one.
    pub fn new(cpu: u16) -> Self {
        Self {
            cpu,
            full: Vec::new(),
            last: Vec::new(),
            stored: None,
        }
    }

    /// Appends a page; one that is none is dropped.
    pub fn push(&mut self, page: &[u8], spool: &mut Spool) -> io::Result<()> {
        let Some(used) = page::used_bytes(page).filter(|&used| used > page::HEADER_BYTES) else {
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

    /// Number of bytes in it.
    pub fn bytes(&self) -> u64 {
        self.chunks().map(|chunk| chunk.len() as u64).sum()
    }

    /// Its records in the order they were made.
    pub fn records(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let pages = self.chunks().flat_map(|rest| Pages { rest });
        pages.flat_map(page::Records::of)
    }

    fn chunks(&self) -> impl Iterator<Item = &[u8]> {
        let full = self.full.iter().map(|chunk| match chunk {
            Chunk::Memory(bytes) => bytes,
            Chunk::File { offset, length } => {
                (self.stored.as_ref()).map_or(&[][..], |mapping| mapping.slice(*offset, *length))
            }
        });
        full.chain([&self.last[..]])
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
