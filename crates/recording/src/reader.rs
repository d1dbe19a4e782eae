//! Reads a recording whole, and reports every fault as an error.

use std::path::Path;

use tierwise_input::Links;

use crate::decode::decode;
use crate::error;
use crate::manifest::{Manifest, TableFile, table_path};
use crate::room::{Stated, require_room};
use crate::sums::checksum;
use crate::table::Table;
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
                error::damaged(&file, format!("tables.{name} is missing"))
            })
        };
        require_room(
            directory,
            &[
                stated::<Thread>(table)?,
                stated::<File>(table)?,
                stated::<State>(table)?,
                stated::<Call>(table)?,
                stated::<Block>(table)?,
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
fn stated<R: Table>(
    tables: impl Fn(&str) -> Result<TableFile, UserError>,
) -> Result<Stated, UserError> {
    Ok((R::NAME, tables(R::NAME)?, size_of::<R>()))
}

fn read_table<R: Table>(
    directory: &Path,
    expected: impl Fn(&str) -> Result<TableFile, UserError>,
) -> Result<Vec<R>, UserError> {
    let expected = expected(R::NAME)?;
    let path = table_path(directory, R::NAME);
    let unreadable = |error| error::unreadable(&path, &error);
    let damaged = |problem| error::damaged(&path, problem);
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
