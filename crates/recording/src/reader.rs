//! Reads a recording whole, and reports every fault as an error.

use std::fs;
use std::path::Path;

use bytes::Bytes;

use crate::decode::decode;
use crate::manifest::{Manifest, TableFile, table_path};
use crate::table::Table;
use crate::{About, NONE, Recording, RecordingError};

impl Recording {
    /// Read a recording and check it: its indices are in range, its rows in order, its times sane.
    ///
    /// # Errors
    /// If it is no recording, is newer than this program, or is truncated or damaged: naming the file.
    pub fn read(directory: &Path) -> Result<Self, RecordingError> {
        let Manifest { about, tables } = Manifest::read(directory)?;
        let table = |name: &str| {
            tables.get(name).copied().ok_or_else(|| {
                let file = directory.join("about.json");
                RecordingError::damaged(&file, format!("tables.{name} is missing"))
            })
        };
        let mut recording = Self {
            about,
            threads: read_table(directory, table)?,
            files: read_table(directory, table)?,
            states: read_table(directory, table)?,
            calls: read_table(directory, table)?,
            blocks: read_table(directory, table)?,
        };
        recording.require_known_calls(directory)?;
        recording.sort();
        recording.check_in(directory)?;
        Ok(recording)
    }

    /// A recording's description of itself, without its tables.
    ///
    /// # Errors
    /// If it is no recording, or is newer than this program.
    pub fn read_about(directory: &Path) -> Result<About, RecordingError> {
        Ok(Manifest::read(directory)?.about)
    }

    /// Put rows in the order that [`Recording`] promises: files hold them burst by burst. The calls that
    /// states name must exist.
    pub fn sort(&mut self) {
        if !self
            .calls
            .is_sorted_by_key(|call| (call.thread, call.start_ns))
        {
            self.sort_calls();
        }
        self.states
            .sort_by_key(|state| (state.thread, state.start_ns));
        self.blocks.sort_by_key(|block| block.issued_ns);
    }

    /// Sort calls, and update the indices in states.
    fn sort_calls(&mut self) {
        let mut order: Vec<u32> = (0..NONE).take(self.calls.len()).collect();
        order.sort_by_key(|&at| {
            let call = &self.calls[at as usize];
            (call.thread, call.start_ns)
        });
        let mut place = vec![NONE; order.len()];
        for (new, &old) in (0..NONE).zip(&order) {
            place[old as usize] = new;
        }
        self.calls = order.iter().map(|&at| self.calls[at as usize]).collect();
        for state in self.states.iter_mut().filter(|state| state.call != NONE) {
            state.call = place[state.call as usize];
        }
    }
}

fn read_table<R: Table>(
    directory: &Path,
    expected: impl Fn(&str) -> Result<TableFile, RecordingError>,
) -> Result<Vec<R>, RecordingError> {
    let expected = expected(R::NAME)?;
    let path = table_path(directory, R::NAME);
    let bytes = fs::read(&path).map_err(|error| RecordingError::unreadable(&path, &error))?;
    if let Some(problem) = damage(&bytes, expected) {
        return Err(RecordingError::damaged(&path, problem));
    }
    decode(Bytes::from(bytes), expected.rows)
        .map_err(|problem| RecordingError::damaged(&path, problem))
}

/// How the bytes differ from those that were written.
fn damage(bytes: &[u8], expected: TableFile) -> Option<String> {
    let size_bytes = bytes.len() as u64;
    if size_bytes != expected.size_bytes {
        let written = expected.size_bytes;
        return Some(format!(
            "has {size_bytes} bytes, and {written} were written"
        ));
    }
    let changed = crc32fast::hash(bytes) != expected.crc32;
    changed.then(|| "has changed since it was written: its checksum differs".to_owned())
}
