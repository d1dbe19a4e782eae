//! Tables as files, for engines that load files.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use crate::error::TpchError;
use crate::source::Source;

/// Write one of `parts` parts as lines of fields separated by `|`; returns the number of rows.
///
/// # Errors
/// If there is no such part, or the file cannot be written.
pub fn write_file(source: Source, part: u32, parts: u32, path: &Path) -> Result<u64, TpchError> {
    let failed = |error| TpchError::Write {
        path: path.to_owned(),
        source: error,
    };
    let mut lines = source.lines(part, parts)?;
    let mut file = File::create(path).map_err(failed)?;
    let mut rows = 0;
    while let Some(text) = lines.next_text() {
        rows += text.bytes().filter(|&byte| byte == b'\n').count() as u64;
        file.write_all(text.as_bytes()).map_err(failed)?;
    }
    Ok(rows)
}
