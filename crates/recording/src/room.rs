//! How many rows a recording may have, by the size of its files and by the memory that is free.

use std::fs;
use std::path::Path;

use crate::UserError;
use crate::error;
use crate::manifest::{TableFile, table_path};

/// Rows that any file may have: regular ones compress without limit, and so many take 30 MB.
const FREE_ROWS: u64 = 1 << 19;
/// Rows for each byte of a larger file: recorded ones take six bytes and more.
const ROWS_A_BYTE: u64 = 2;

/// A table's name, what `about.json` says of its file, and the memory that a row takes.
pub(crate) type Stated = (&'static str, TableFile, usize);

/// Refuse tables of far more rows than files of their size can hold, or than fit into free memory.
pub(crate) fn require_room(directory: &Path, tables: &[Stated]) -> Result<(), UserError> {
    let mut needed_bytes = 0u64;
    for &(name, table, row_bytes) in tables {
        let TableFile {
            rows, size_bytes, ..
        } = table;
        if rows > FREE_ROWS && rows / ROWS_A_BYTE > size_bytes {
            let problem = format!("{rows} rows cannot be in {size_bytes} bytes");
            return Err(error::damaged(&table_path(directory, name), problem));
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
    let told = fs::read_to_string("/proc/meminfo").ok()?;
    let line = told
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
        let refused = require_room(Path::new("r"), &tables).err();
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
