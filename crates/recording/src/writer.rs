//! Writes a recording while it is made, the rows of one burst at a time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::encode::TableWriter;
use crate::manifest::{self, FORMAT, Manifest, TableFile, private_folder};
use crate::schema::Table;
use crate::{About, Block, Call, FORMAT_VERSION, File, NONE, Recording, State, Thread, UserError};

/// Rows of one burst. A state's `call` counts within the burst, from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BurstRows {
    /// States of each thread.
    pub states: Vec<State>,
    /// System calls.
    pub calls: Vec<Call>,
    /// Requests to block devices.
    pub blocks: Vec<Block>,
}

/// Writes a recording of any length in little memory.
pub struct Writer {
    directory: PathBuf,
    states: TableWriter<State>,
    calls: TableWriter<Call>,
    blocks: TableWriter<Block>,
}

impl Writer {
    /// Begin a recording in `directory`, which is made where it does not exist.
    ///
    /// # Errors
    /// If a recording is there already, or the folder cannot be written.
    pub fn create(directory: &Path) -> Result<Self, UserError> {
        if manifest::exists(directory) {
            return Err(UserError::new(
                format!("{} holds a recording already", directory.display()),
                "name another folder, or remove that one",
            ));
        }
        private_folder(directory).map_err(|error| manifest::unwritable(directory, error))?;
        Ok(Self {
            directory: directory.to_owned(),
            states: TableWriter::create(directory)?,
            calls: TableWriter::create(directory)?,
            blocks: TableWriter::create(directory)?,
        })
    }

    /// Add the rows of a burst; those of states and calls by thread, then by time.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn burst(&mut self, rows: BurstRows) -> Result<(), UserError> {
        let first = u32::try_from(self.calls.rows()).unwrap_or(NONE);
        let shift = |call: u32| match call {
            NONE => NONE,
            call => call.saturating_add(first),
        };
        let states = rows.states.into_iter();
        self.states.add(states.map(|state| State {
            call: shift(state.call),
            ..state
        }))?;
        self.calls.add(rows.calls)?;
        self.blocks.add(rows.blocks)
    }

    /// Write the recording so far to another folder; it can go on afterwards.
    ///
    /// # Errors
    /// As [`Writer::create`] and [`Writer::finish`].
    pub fn snapshot(
        &mut self,
        directory: &Path,
        about: About,
        threads: Vec<Thread>,
        files: Vec<File>,
    ) -> Result<(), UserError> {
        private_folder(directory).map_err(|error| manifest::unwritable(directory, error))?;
        let tables = [
            self.states.snapshot(directory)?,
            self.calls.snapshot(directory)?,
            self.blocks.snapshot(directory)?,
        ];
        describe(directory, about, (threads, files), tables)
    }

    /// End the recording with its final description; `about`'s format and version are filled in.
    ///
    /// # Errors
    /// If the file system refuses. The folder is then no recording.
    pub fn finish(
        self,
        about: About,
        threads: Vec<Thread>,
        files: Vec<File>,
    ) -> Result<(), UserError> {
        let tables = [
            self.states.finish()?,
            self.calls.finish()?,
            self.blocks.finish()?,
        ];
        describe(&self.directory, about, (threads, files), tables)
    }
}

/// Write the final description of a recording whose tables of states, calls and blocks are written.
fn describe(
    directory: &Path,
    about: About,
    (threads, files): (Vec<Thread>, Vec<File>),
    [states, calls, blocks]: [TableFile; 3],
) -> Result<(), UserError> {
    let tables = BTreeMap::from([
        (Thread::NAME.to_owned(), whole_table(directory, threads)?),
        (File::NAME.to_owned(), whole_table(directory, files)?),
        (State::NAME.to_owned(), states),
        (Call::NAME.to_owned(), calls),
        (Block::NAME.to_owned(), blocks),
    ]);
    let about = About {
        format: FORMAT.to_owned(),
        version: FORMAT_VERSION,
        ..about
    };
    Manifest { about, tables }.write(directory)
}

fn whole_table<R: Table>(directory: &Path, rows: Vec<R>) -> Result<TableFile, UserError> {
    let mut table = TableWriter::create(directory)?;
    table.add(rows)?;
    table.finish()
}

impl Recording {
    /// Write the whole of it to `directory`; its format and version are filled in.
    ///
    /// # Errors
    /// As [`Writer::create`], [`Writer::burst`] and [`Writer::finish`].
    pub fn write(&self, directory: &Path) -> Result<(), UserError> {
        let mut writer = Writer::create(directory)?;
        writer.burst(BurstRows {
            states: self.states.clone(),
            calls: self.calls.clone(),
            blocks: self.blocks.clone(),
        })?;
        writer.finish(self.about.clone(), self.threads.clone(), self.files.clone())
    }
}
