//! Reads a recording whole, and reports every fault as an error.

use std::fs;
use std::path::Path;

use tierwise_input::Links;

use crate::manifest::{self, Manifest, TableFile, checksum, table_path};
use crate::parquet_decoding::decode;
use crate::schema::Table;
use crate::{About, Block, Call, File, NONE, Recording, State, Thread, UserError};

impl Recording {
    /// Read a recording and check it: its indices are in range, its rows in order, its times sane.
    ///
    /// # Errors
    /// If it is no recording, is newer than this program, or is truncated or damaged: naming the file.
    pub fn read(directory: &Path) -> Result<Self, UserError> {
        let Manifest { about, tables } = Manifest::read(directory)?;
        let table = |name: &str| {
            tables.get(name).copied().ok_or_else(|| {
                let file = directory.join("about.json");
                manifest::damaged_file_error(&file, format!("tables.{name} is missing"))
            })
        };
        require_memory(
            directory,
            &[
                stated_table::<Thread>(table)?,
                stated_table::<File>(table)?,
                stated_table::<State>(table)?,
                stated_table::<Call>(table)?,
                stated_table::<Block>(table)?,
            ],
        )?;
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
    pub fn read_about(directory: &Path) -> Result<About, UserError> {
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

/// What `about.json` says of a table.
fn stated_table<R: Table>(
    tables: impl Fn(&str) -> Result<TableFile, UserError>,
) -> Result<StatedTable, UserError> {
    Ok((R::NAME, tables(R::NAME)?, size_of::<R>()))
}

fn read_table<R: Table>(
    directory: &Path,
    expected: impl Fn(&str) -> Result<TableFile, UserError>,
) -> Result<Vec<R>, UserError> {
    let expected = expected(R::NAME)?;
    let path = table_path(directory, R::NAME);
    let unreadable = |error| manifest::unreadable(&path, &error);
    let damaged = |problem| manifest::damaged_file_error(&path, problem);
    let file = tierwise_input::open(&path, Links::Refuse).map_err(unreadable)?;
    let size_bytes = file.metadata().map_err(unreadable)?.len();
    if size_bytes != expected.size_bytes {
        let written = expected.size_bytes;
        return Err(damaged(format!(
            "has {size_bytes} bytes, and {written} were written"
        )));
    }
    if checksum(&file, size_bytes).map_err(unreadable)? != expected.crc32 {
        let problem = "has changed since it was written: its checksum differs";
        return Err(damaged(problem.to_owned()));
    }
    decode(file, size_bytes, expected.rows).map_err(damaged)
}

// How many rows a recording may have, by the size of its files and by the memory that is free.

/// Rows that any file may have: regular ones compress without limit, and so many take 30 MB.
const FREE_ROWS: u64 = 1 << 19;
/// Rows for each byte of a larger file: recorded ones take six bytes and more.
const ROWS_A_BYTE: u64 = 2;

/// A table's name, what `about.json` says of its file, and the memory that a row takes.
pub(crate) type StatedTable = (&'static str, TableFile, usize);

/// Refuse tables of far more rows than files of their size can hold, or than fit into free memory.
pub(crate) fn require_memory(directory: &Path, tables: &[StatedTable]) -> Result<(), UserError> {
    let mut needed_bytes = 0u64;
    for &(name, table, row_bytes) in tables {
        let TableFile {
            rows, size_bytes, ..
        } = table;
        if rows > FREE_ROWS && rows / ROWS_A_BYTE > size_bytes {
            let problem = format!("{rows} rows cannot be in {size_bytes} bytes");
            return Err(manifest::damaged_file_error(
                &table_path(directory, name),
                problem,
            ));
        }
        needed_bytes = needed_bytes.saturating_add(rows.saturating_mul(row_bytes as u64));
    }
    match available_bytes() {
        Some(free_bytes) if needed_bytes > free_bytes => Err(UserError::new(
            format!(
                "{}: its rows take {} MiB of memory, and {} MiB are free",
                directory.display(),
                needed_bytes >> 20,
                free_bytes >> 20
            ),
            "free memory, use a machine with more of it, or record for a shorter time",
        )),
        _ => Ok(()),
    }
}

/// Memory that can be taken without swapping (proc_meminfo(5)).
fn available_bytes() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(rows: u64, size_bytes: u64) -> Option<String> {
        let table = TableFile {
            rows,
            size_bytes,
            crc32: 0,
        };
        let tables = [("calls", table, 56)];
        let refused = require_memory(Path::new("r"), &tables).err();
        refused.map(|error| error.message)
    }

    #[test]
    fn a_small_file_has_no_millions_of_rows() {
        let problem = "r/calls.parquet: 50000000 rows cannot be in 305 bytes";
        assert_eq!(refused(50_000_000, 305).as_deref(), Some(problem));
        assert_eq!(refused(FREE_ROWS, 305), None);
        assert_eq!(refused(1_000_000, 500_000), None);
    }

    #[test]
    fn rows_must_fit_into_memory() {
        let problem = refused(u64::MAX, u64::MAX).unwrap();
        assert!(problem.starts_with("r: its rows take"), "{problem}");
    }
}
