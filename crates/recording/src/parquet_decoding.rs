//! A Parquet file becomes rows. Nothing in the file is trusted.

use std::any::Any;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parquet::basic::Type as Physical;
use parquet::column::reader::{ColumnReader, get_column_reader, get_typed_column_reader};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::file::metadata::{
    ColumnChunkMetaData, FooterTail, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};

use crate::column_pages::{ColumnPages, TableBytes};
use crate::page_header;
use crate::schema::{Cell, Table, TableColumn};

/// Numbers decoded at once.
const BATCH: usize = 1 << 14;
/// Texts decoded at once: where they share beginnings, each may be as long as its page.
const TEXTS: usize = 16;
/// Longest metadata of a file: 700 row groups of some 1.5 KB.
const MOST_FOOTER_BYTES: usize = 1 << 20;
/// Bytes that the pages of a file may become, besides those of its rows: its dictionaries.
const MOST_SHARED_BYTES: u64 = 64 << 20;
/// Bytes of a row's cells, more than any has: ten numbers and a path.
const MOST_ROW_BYTES: u64 = 256;
/// Longest text: a path has 4 KiB at most.
const MOST_TEXT_BYTES: usize = 8 << 10;
/// All texts of a column.
const MOST_TEXTS_BYTES: usize = 64 << 20;

/// Every row of the file, or the fault of the file.
///
/// `rows` is the number of rows that the recording states: no more are made, whatever the file claims.
pub(crate) fn decode<R: Table>(file: File, size_bytes: u64, rows: u64) -> Result<Vec<R>, String> {
    // The decoder is not ours, and it asserts some of its checks of a damaged file.
    catch_unwind(AssertUnwindSafe(|| decode_file(file, size_bytes, rows)))
        .unwrap_or_else(|panic| Err(format!("is no such table ({})", dictionary_words(&*panic))))
}

fn dictionary_words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("its pages contradict each other")
}

fn decode_file<R: Table>(file: File, size_bytes: u64, rows: u64) -> Result<Vec<R>, String> {
    let most_bytes = MOST_SHARED_BYTES + rows.saturating_mul(MOST_ROW_BYTES);
    let bytes = Arc::new(TableBytes::new(file, size_bytes, most_bytes));
    let metadata = metadata_of(&bytes, size_bytes)?;
    let columns = R::columns();
    let mut decoded = Vec::with_capacity(usize::try_from(rows).unwrap_or(0));
    for group in metadata.row_groups() {
        decode_group(&bytes, group, &columns, rows, &mut decoded)?;
    }
    match decoded.len() as u64 == rows {
        true => Ok(decoded),
        false => Err(format!(
            "has {} rows, and about.json says {rows}",
            decoded.len()
        )),
    }
}

/// The metadata at the end of a file.
fn metadata_of(bytes: &TableBytes, size_bytes: u64) -> Result<ParquetMetaData, String> {
    let tail: [u8; 8] = size_bytes
        .checked_sub(8)
        .and_then(|at| bytes.range(at, 8).ok()?.try_into().ok())
        .ok_or("is no Parquet file")?;
    let tail = FooterTail::try_new(&tail).map_err(|error| error.to_string())?;
    let length = tail.metadata_length();
    if length > MOST_FOOTER_BYTES {
        return Err(format!(
            "has metadata of {length} bytes, above {MOST_FOOTER_BYTES}"
        ));
    }
    let at = size_bytes.checked_sub(8 + length as u64);
    let metadata = bytes.range(at.ok_or("is shorter than its metadata")?, length)?;
    // The decoder of the schema recurses once for each level of a nested one.
    match page_header::is_flat(&metadata) {
        Some(true) => {}
        Some(false) => return Err("has nested or too many columns".to_owned()),
        None => return Err("has damaged metadata".to_owned()),
    }
    ParquetMetaDataReader::decode_metadata(&metadata).map_err(|error| error.to_string())
}

fn decode_group<R: Table>(
    bytes: &Arc<TableBytes>,
    group: &RowGroupMetaData,
    columns: &[TableColumn<R>],
    limit: u64,
    decoded: &mut Vec<R>,
) -> Result<(), String> {
    let first = decoded.len();
    let claimed = u64::try_from(group.num_rows()).unwrap_or(u64::MAX);
    if claimed > limit - first as u64 {
        return Err(format!("has more rows than the {limit} of about.json"));
    }
    decoded.extend((0..claimed).map(|_| R::default()));
    for column in columns {
        let Some(reader) = column_reader(bytes, group, column)? else {
            continue;
        };
        decode_column(reader, column, &mut decoded[first..], first)
            .map_err(|problem| format!("column {}: {problem}", column.name))?;
    }
    Ok(())
}

/// The reader of a column, after a check of its type against the schema; none where it was added to the
/// format later.
fn column_reader<R>(
    bytes: &Arc<TableBytes>,
    group: &RowGroupMetaData,
    column: &TableColumn<R>,
) -> Result<Option<ColumnReader>, String> {
    let there = group.columns();
    let named = |chunk: &ColumnChunkMetaData| chunk.column_path().string() == column.name;
    let Some(at) = there.iter().position(named) else {
        return match column.added {
            true => Ok(None),
            false => Err(format!("has no column {}", column.name)),
        };
    };
    let descriptor = there[at].column_descr();
    let expected = match column.cell {
        Cell::Row | Cell::Number { .. } => Physical::INT64,
        Cell::Word { .. } | Cell::Text { .. } => Physical::BYTE_ARRAY,
        Cell::Flag { .. } => Physical::BOOLEAN,
    };
    if descriptor.physical_type() != expected
        || descriptor.max_rep_level() != 0
        || descriptor.max_def_level() > 1
    {
        return Err(format!("column {} is not of type {expected}", column.name));
    }
    let rows = u64::try_from(group.num_rows()).unwrap_or(0);
    let pages = ColumnPages::new(bytes, &there[at], rows)
        .map_err(|problem| format!("column {} {problem}", column.name))?;
    let reader = get_column_reader(there[at].column_descr_ptr(), Box::new(pages));
    Ok(Some(reader))
}

fn decode_column<R>(
    reader: ColumnReader,
    column: &TableColumn<R>,
    rows: &mut [R],
    first: usize,
) -> Result<(), String> {
    match &column.cell {
        Cell::Row => fill_each_row::<Int64Type, R>(reader, BATCH, rows, |_, at, value| {
            match value == i64::try_from(first + at).ok() {
                true => Ok(()),
                false => Err(format!("row {} has another number", first + at)),
            }
        }),
        Cell::Number { set, .. } => {
            fill_each_row::<Int64Type, R>(reader, BATCH, rows, |row, _, value| {
                match set(row, value) {
                    true => Ok(()),
                    false => Err(format!("{value:?} is out of range")),
                }
            })
        }
        Cell::Word {
            words,
            set,
            optional,
            ..
        } => fill_each_row::<ByteArrayType, R>(reader, TEXTS, rows, |row, _, value| {
            let place = value.map(|value| word_place(words, &value)).transpose()?;
            set(row, place);
            match place.is_some() || *optional {
                true => Ok(()),
                false => Err("is null".to_owned()),
            }
        }),
        Cell::Text { set, .. } => {
            let mut left_bytes = MOST_TEXTS_BYTES;
            fill_each_row::<ByteArrayType, R>(reader, TEXTS, rows, |row, _, value| {
                let value = value.ok_or("is null")?;
                if value.len() > MOST_TEXT_BYTES {
                    return Err(format!("has a text of {} bytes", value.len()));
                }
                left_bytes = (left_bytes.checked_sub(value.len()))
                    .ok_or_else(|| format!("has texts of more than {MOST_TEXTS_BYTES} bytes"))?;
                let text = value.as_utf8().map_err(|_| "is not UTF-8".to_owned())?;
                set(row, text.to_owned());
                Ok(())
            })
        }
        Cell::Flag { set, .. } => {
            fill_each_row::<BoolType, R>(reader, BATCH, rows, |row, _, value| {
                set(row, value.ok_or("is null")?);
                Ok(())
            })
        }
    }
}

fn word_place(words: &[&str], value: &ByteArray) -> Result<usize, String> {
    words
        .iter()
        .position(|word| word.as_bytes() == value.data())
        .ok_or_else(|| {
            let text: String = value.as_utf8().unwrap_or("?").chars().take(40).collect();
            format!("{text:?} is none of {}", words.join(", "))
        })
}

/// Hand each row its value, none where it is null; there must be one for every row. `batch` are decoded at once.
fn fill_each_row<T: DataType, R>(
    reader: ColumnReader,
    batch: usize,
    rows: &mut [R],
    mut take: impl FnMut(&mut R, usize, Option<T::T>) -> Result<(), String>,
) -> Result<(), String> {
    let mut reader = get_typed_column_reader::<T>(reader);
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < rows.len() {
        values.clear();
        levels.clear();
        let wanted = batch.min(rows.len() - at);
        let (found, ..) = reader
            .read_records(wanted, Some(&mut levels), None, &mut values)
            .map_err(|error| error.to_string())?;
        if found == 0 || found > wanted {
            return Err(format!("ends after {at} of {} rows", rows.len()));
        }
        // A column without nulls has no levels.
        levels.resize(found, 1);
        let mut left = values.drain(..);
        for &level in &levels {
            let value = if level == 0 { None } else { left.next() };
            take(&mut rows[at], at, value)?;
            at += 1;
        }
    }
    Ok(())
}
