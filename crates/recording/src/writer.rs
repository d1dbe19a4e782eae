//! Writes a recording while it is made, the rows of one burst at a time.

use std::collections::BTreeMap;
use std::fs::File as FsFile;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{
    Compression, ConvertedType, Encoding, Repetition, Type as Physical, ZstdLevel,
};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::Result as ParquetResult;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type};

use crate::manifest::{
    self, ChecksumStream, FORMAT, Manifest, TableFile, create_private_file, create_private_folder,
    table_path,
};
use crate::schema::{Cell, Table, TableColumn};
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
        if manifest::recording_exists(directory) {
            return Err(UserError::new(
                format!("{} holds a recording already", directory.display()),
                "name another folder, or remove that one",
            ));
        }
        create_private_folder(directory)
            .map_err(|error| manifest::unwritable_file_error(directory, error))?;
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
        create_private_folder(directory)
            .map_err(|error| manifest::unwritable_file_error(directory, error))?;
        let tables = [
            self.states.snapshot(directory)?,
            self.calls.snapshot(directory)?,
            self.blocks.snapshot(directory)?,
        ];
        write_description(directory, about, (threads, files), tables)
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
        write_description(&self.directory, about, (threads, files), tables)
    }
}

/// Write the final description of a recording whose tables of states, calls and blocks are written.
fn write_description(
    directory: &Path,
    about: About,
    (threads, files): (Vec<Thread>, Vec<File>),
    [states, calls, blocks]: [TableFile; 3],
) -> Result<(), UserError> {
    let tables = BTreeMap::from([
        (
            Thread::NAME.to_owned(),
            write_whole_table(directory, threads)?,
        ),
        (File::NAME.to_owned(), write_whole_table(directory, files)?),
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

fn write_whole_table<R: Table>(directory: &Path, rows: Vec<R>) -> Result<TableFile, UserError> {
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

// Rows become a Parquet file, a row group at a time.

/// Rows that share a row group: enough for compression, few enough for memory.
const GROUP_ROWS: usize = 1 << 18;

/// Writes one table; rows wait in memory until there is a row group of them.
pub(crate) struct TableWriter<R: Table> {
    path: PathBuf,
    file: SerializedFileWriter<ChecksumStream<BufWriter<FsFile>>>,
    columns: Vec<TableColumn<R>>,
    waiting: Vec<R>,
    rows: u64,
}

impl<R: Table> TableWriter<R> {
    /// A new file in `directory`.
    pub fn create(directory: &Path) -> Result<Self, UserError> {
        let path = table_path(directory, R::NAME);
        let columns = R::columns();
        let open = || -> Result<_, Box<dyn std::error::Error>> {
            let sink = ChecksumStream::new(BufWriter::new(create_private_file(&path)?));
            let (schema, properties) = (parquet_schema(&columns)?, parquet_properties(&columns)?);
            Ok(SerializedFileWriter::new(sink, schema, properties)?)
        };
        let file = open().map_err(|error| manifest::unwritable_file_error(&path, error))?;
        Ok(Self {
            path,
            file,
            columns,
            waiting: Vec::new(),
            rows: 0,
        })
    }

    /// Number of rows added so far.
    pub fn rows(&self) -> u64 {
        self.rows + self.waiting.len() as u64
    }

    /// Append rows.
    pub fn add(&mut self, rows: impl IntoIterator<Item = R>) -> Result<(), UserError> {
        for row in rows {
            self.waiting.push(row);
            if self.waiting.len() == GROUP_ROWS {
                self.write_group()?;
            }
        }
        Ok(())
    }

    /// Write the rows added so far to a file of its own in another directory; more can be added afterwards.
    pub fn snapshot(&mut self, directory: &Path) -> Result<TableFile, UserError> {
        let mut copy = Self::create(directory)?;
        self.copy_groups(&mut copy.file)
            .map_err(|error| manifest::unwritable_file_error(&copy.path, error))?;
        copy.rows = self.rows;
        if !self.waiting.is_empty() {
            require_writable(&copy.path, &copy.columns, &self.waiting)?;
            encode_group(&mut copy.file, &copy.columns, &self.waiting, copy.rows)
                .map_err(|error| manifest::unwritable_file_error(&copy.path, error))?;
            copy.rows += self.waiting.len() as u64;
        }
        copy.finish()
    }

    /// Copy the row groups that are on disk, without decoding them.
    fn copy_groups(
        &mut self,
        to: &mut SerializedFileWriter<ChecksumStream<BufWriter<FsFile>>>,
    ) -> ParquetResult<()> {
        self.file.flush()?;
        let written = FsFile::open(&self.path)?;
        for group in self.file.flushed_row_groups() {
            let mut copy = to.next_row_group()?;
            for column in group.columns() {
                let whole = ColumnCloseResult {
                    bytes_written: column.compressed_size() as u64,
                    rows_written: group.num_rows() as u64,
                    metadata: column.clone(),
                    bloom_filter: None,
                    column_index: None,
                    offset_index: None,
                };
                copy.append_column(&written, whole)?;
            }
            copy.close()?;
        }
        Ok(())
    }

    /// Write the waiting rows, and the end of the file.
    pub fn finish(mut self) -> Result<TableFile, UserError> {
        if !self.waiting.is_empty() {
            self.write_group()?;
        }
        let Self {
            path, file, rows, ..
        } = self;
        let end = || -> Result<TableFile, Box<dyn std::error::Error>> {
            let (mut sink, size_bytes, crc32) = file.into_inner()?.end();
            sink.flush()?;
            Ok(TableFile {
                rows,
                size_bytes,
                crc32,
            })
        };
        end().map_err(|error| manifest::unwritable_file_error(&path, error))
    }

    fn write_group(&mut self) -> Result<(), UserError> {
        require_writable(&self.path, &self.columns, &self.waiting)?;
        encode_group(&mut self.file, &self.columns, &self.waiting, self.rows)
            .map_err(|error| manifest::unwritable_file_error(&self.path, error))?;
        self.rows += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }
}

/// Refuse numbers beyond 63 bits, which no kernel returns.
fn require_writable<R>(
    path: &Path,
    columns: &[TableColumn<R>],
    rows: &[R],
) -> Result<(), UserError> {
    for column in columns {
        if let Cell::Number {
            get,
            optional: false,
            ..
        } = column.cell
            && rows.iter().any(|row| get(row).is_none())
        {
            let problem = format!("a value of {} has more than 63 bits", column.name);
            return Err(manifest::unwritable_file_error(path, problem));
        }
    }
    Ok(())
}

fn encode_group<R, W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    columns: &[TableColumn<R>],
    rows: &[R],
    first_row: u64,
) -> ParquetResult<()> {
    let mut group = file.next_row_group()?;
    for column in columns {
        let mut writer = group.next_column()?.expect("the schema has every column");
        encode_column(&mut writer, column, rows, first_row)?;
        writer.close()?;
    }
    group.close()?;
    Ok(())
}

fn encode_column<R>(
    writer: &mut SerializedColumnWriter<'_>,
    column: &TableColumn<R>,
    rows: &[R],
    first_row: u64,
) -> ParquetResult<()> {
    match &column.cell {
        Cell::Row => {
            let numbers: Vec<i64> = (0..rows.len() as u64)
                .map(|row| i64::try_from(first_row + row).unwrap_or(i64::MAX))
                .collect();
            put_value::<Int64Type>(writer, &numbers, None)
        }
        Cell::Number { get, optional, .. } => {
            let numbers: Vec<Option<i64>> = rows.iter().map(get).collect();
            put_optional_value::<Int64Type>(writer, numbers, *optional)
        }
        Cell::Word {
            words,
            get,
            optional,
            ..
        } => {
            let words: Vec<ByteArray> = words.iter().map(|&word| word.into()).collect();
            let cells = rows.iter().map(|row| get(row).map(|at| words[at].clone()));
            put_optional_value::<ByteArrayType>(writer, cells.collect(), *optional)
        }
        Cell::Text { get, .. } => {
            let texts: Vec<ByteArray> = rows.iter().map(|row| get(row).into()).collect();
            put_value::<ByteArrayType>(writer, &texts, None)
        }
        Cell::Flag { get, .. } => {
            let flags: Vec<bool> = rows.iter().map(get).collect();
            put_value::<BoolType>(writer, &flags, None)
        }
    }
}

fn put_optional_value<T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    cells: Vec<Option<T::T>>,
    optional: bool,
) -> ParquetResult<()> {
    let levels: Option<Vec<i16>> =
        optional.then(|| cells.iter().map(|cell| cell.is_some().into()).collect());
    let values: Vec<T::T> = cells.into_iter().flatten().collect();
    put_value::<T>(writer, &values, levels.as_deref())
}

fn put_value<T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> ParquetResult<()> {
    writer.typed::<T>().write_batch(values, levels, None)?;
    Ok(())
}

fn parquet_schema<R>(columns: &[TableColumn<R>]) -> ParquetResult<Arc<Type>> {
    let fields = columns
        .iter()
        .map(|column| parquet_field(column).map(Arc::new))
        .collect::<ParquetResult<_>>()?;
    let schema = Type::group_type_builder("recording").with_fields(fields);
    Ok(Arc::new(schema.build()?))
}

fn parquet_field<R>(column: &TableColumn<R>) -> ParquetResult<Type> {
    let (physical, converted) = match column.cell {
        Cell::Row | Cell::Number { .. } => (Physical::INT64, ConvertedType::NONE),
        Cell::Word { .. } | Cell::Text { .. } => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
        Cell::Flag { .. } => (Physical::BOOLEAN, ConvertedType::NONE),
    };
    let repetition = match column.is_optional() {
        true => Repetition::OPTIONAL,
        false => Repetition::REQUIRED,
    };
    Type::primitive_type_builder(column.name, physical)
        .with_converted_type(converted)
        .with_repetition(repetition)
        .build()
}

/// Zstandard; difference encoding for rising values, a dictionary for the rest.
fn parquet_properties<R>(columns: &[TableColumn<R>]) -> ParquetResult<Arc<WriterProperties>> {
    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_created_by(format!("tierwise {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?));
    for column in columns.iter().filter(|column| column.rising) {
        let path = ColumnPath::from(column.name);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    Ok(Arc::new(properties.build()))
}
