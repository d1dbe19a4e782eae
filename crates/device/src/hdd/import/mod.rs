//! Turns a drive's measured parameters into the text of a profile.
//!
//! The input is the form of the DiskSim validation set as JSON (geometry, mechanics, cache, overheads) and a
//! table of measured seek times. Nothing is fitted to measured requests: the rules in [`rules`], which are
//! the same for every drive, decide whatever the files leave open.

mod drive;
mod error;
mod render;
mod rules;
#[cfg(test)]
mod tests;

use drive::Drive;
pub use error::{ImportError, ImportFile};

/// The text of a profile for the drive that `geometry` (JSON) and `seek` (CSV with the columns
/// `distance_cylinders,seek_ms`) describe.
///
/// # Errors
/// JSON of another form, a field out of range; a seek table that is empty, has a line that is not two numbers, or
/// distances that do not ascend.
pub fn import(geometry: &str, seek: &str) -> Result<String, ImportError> {
    let drive = Drive::parse(geometry)?;
    let rows = seek_rows(seek)?;
    Ok(render::profile(&drive, &rows))
}

/// Pairs of distance in cylinders and time in milliseconds.
fn seek_rows(seek: &str) -> Result<Vec<(f64, f64)>, ImportError> {
    let mut rows: Vec<(f64, f64)> = Vec::new();
    for (index, line) in seek.lines().enumerate().skip(1) {
        if line.trim().is_empty() {
            continue;
        }
        let fault = |what: &str| ImportError::seek(format!("line {}: {what}: {line}", index + 1));
        let row = seek_row(line).ok_or_else(|| fault("not `distance,milliseconds`"))?;
        if row == (0.0, 0.0) {
            continue;
        }
        if !(1.0..=1e7).contains(&row.0) || !(0.0..=1e3).contains(&row.1) {
            return Err(fault(
                "distance must be 1 to 1e7 cylinders, time 0 to 1000 ms",
            ));
        }
        if rows.last().is_some_and(|last| row.0 <= last.0) {
            return Err(fault("distances must ascend"));
        }
        rows.push(row);
    }
    if rows.is_empty() {
        return Err(ImportError::seek("line 2: no seek time in the table"));
    }
    Ok(rows)
}

fn seek_row(line: &str) -> Option<(f64, f64)> {
    let (distance, time) = line.split_once(',')?;
    Some((distance.trim().parse().ok()?, time.trim().parse().ok()?))
}
