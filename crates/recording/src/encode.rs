//! Rows become a Parquet file, a row group at a time.

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

use crate::UserError;
use crate::manifest::{self, Summed, TableFile, private_file, table_path};
use crate::schema::{Cell, Column, Table};

/// Rows that share a row group: enough for compression, few enough for memory.
const GROUP_ROWS: usize = 1 << 18;

/// Writes one table; rows wait in memory until there is a row group of them.
pub(crate) struct TableWriter<R: Table> {
    path: PathBuf,
    file: SerializedFileWriter<Summed<BufWriter<FsFile>>>,
    columns: Vec<Column<R>>,
    waiting: Vec<R>,
    rows: u64,
}

impl<R: Table> TableWriter<R> {
    /// A new file in `directory`.
    pub fn create(directory: &Path) -> Result<Self, UserError> {
        let path = table_path(directory, R::NAME);
        let columns = R::columns();
        let open = || -> Result<_, Box<dyn std::error::Error>> {
            let sink = Summed::new(BufWriter::new(private_file(&path)?));
            let (schema, properties) = (schema_of(&columns)?, properties_of(&columns)?);
            Ok(SerializedFileWriter::new(sink, schema, properties)?)
        };
        let file = open().map_err(|error| manifest::unwritable(&path, error))?;
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
            .map_err(|error| manifest::unwritable(&copy.path, error))?;
        copy.rows = self.rows;
        if !self.waiting.is_empty() {
            require_writable(&copy.path, &copy.columns, &self.waiting)?;
            encode_group(&mut copy.file, &copy.columns, &self.waiting, copy.rows)
                .map_err(|error| manifest::unwritable(&copy.path, error))?;
            copy.rows += self.waiting.len() as u64;
        }
        copy.finish()
    }

    /// Copy the row groups that are on disk, without decoding them.
    fn copy_groups(
        &mut self,
        to: &mut SerializedFileWriter<Summed<BufWriter<FsFile>>>,
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
        end().map_err(|error| manifest::unwritable(&path, error))
    }

    fn write_group(&mut self) -> Result<(), UserError> {
        require_writable(&self.path, &self.columns, &self.waiting)?;
        encode_group(&mut self.file, &self.columns, &self.waiting, self.rows)
            .map_err(|error| manifest::unwritable(&self.path, error))?;
        self.rows += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }
}

/// Refuse numbers beyond 63 bits, which no kernel returns.
fn require_writable<R>(path: &Path, columns: &[Column<R>], rows: &[R]) -> Result<(), UserError> {
    for column in columns {
        if let Cell::Number {
            get,
            optional: false,
            ..
        } = column.cell
            && rows.iter().any(|row| get(row).is_none())
        {
            let problem = format!("a value of {} has more than 63 bits", column.name);
            return Err(manifest::unwritable(path, problem));
        }
    }
    Ok(())
}

fn encode_group<R, W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    columns: &[Column<R>],
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
    column: &Column<R>,
    rows: &[R],
    first_row: u64,
) -> ParquetResult<()> {
    match &column.cell {
        Cell::Row => {
            let numbers: Vec<i64> = (0..rows.len() as u64)
                .map(|row| i64::try_from(first_row + row).unwrap_or(i64::MAX))
                .collect();
            put::<Int64Type>(writer, &numbers, None)
        }
        Cell::Number { get, optional, .. } => {
            let numbers: Vec<Option<i64>> = rows.iter().map(get).collect();
            put_optional::<Int64Type>(writer, numbers, *optional)
        }
        Cell::Word {
            words,
            get,
            optional,
            ..
        } => {
            let words: Vec<ByteArray> = words.iter().map(|&word| word.into()).collect();
            let cells = rows.iter().map(|row| get(row).map(|at| words[at].clone()));
            put_optional::<ByteArrayType>(writer, cells.collect(), *optional)
        }
        Cell::Text { get, .. } => {
            let texts: Vec<ByteArray> = rows.iter().map(|row| get(row).into()).collect();
            put::<ByteArrayType>(writer, &texts, None)
        }
        Cell::Flag { get, .. } => {
            let flags: Vec<bool> = rows.iter().map(get).collect();
            put::<BoolType>(writer, &flags, None)
        }
    }
}

fn put_optional<T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    cells: Vec<Option<T::T>>,
    optional: bool,
) -> ParquetResult<()> {
    let levels: Option<Vec<i16>> =
        optional.then(|| cells.iter().map(|cell| cell.is_some().into()).collect());
    let values: Vec<T::T> = cells.into_iter().flatten().collect();
    put::<T>(writer, &values, levels.as_deref())
}

fn put<T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> ParquetResult<()> {
    writer.typed::<T>().write_batch(values, levels, None)?;
    Ok(())
}

fn schema_of<R>(columns: &[Column<R>]) -> ParquetResult<Arc<Type>> {
    let fields = columns
        .iter()
        .map(|column| field_of(column).map(Arc::new))
        .collect::<ParquetResult<_>>()?;
    let schema = Type::group_type_builder("recording").with_fields(fields);
    Ok(Arc::new(schema.build()?))
}

fn field_of<R>(column: &Column<R>) -> ParquetResult<Type> {
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
fn properties_of<R>(columns: &[Column<R>]) -> ParquetResult<Arc<WriterProperties>> {
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
