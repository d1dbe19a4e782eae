//! The pages of a column, read one at a time. What a header states is checked before memory is taken for it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, Type as Physical};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ColumnChunkMetaData;

use crate::page_header::{Header, Kind, counts_of_differences};

/// Longest page, compressed or not: writers of Parquet make pages of about 1 MiB.
const MOST_PAGE_BYTES: usize = 16 << 20;
/// Longest page of texts that share beginnings: each of them may become nearly as long as the page.
const MOST_SHARING_BYTES: usize = 8 << 20;
/// Longest header: it may repeat the least and the greatest value of its page.
const MOST_HEADER_BYTES: usize = 64 << 10;

/// A table's file that is being read.
pub(crate) struct TableBytes {
    file: File,
    size_bytes: u64,
    /// Bytes that pages may still become.
    left: AtomicU64,
}

impl TableBytes {
    /// A file, and how many bytes its pages may become in all.
    pub fn new(file: File, size_bytes: u64, most_bytes: u64) -> Self {
        let left = AtomicU64::new(most_bytes);
        Self {
            file,
            size_bytes,
            left,
        }
    }

    /// Bytes of the file, which must have them.
    pub fn range(&self, at: u64, length: usize) -> Result<Vec<u8>, String> {
        let end = at.checked_add(length as u64);
        if end.is_none_or(|end| end > self.size_bytes) {
            return Err(format!("has no {length} bytes at {at}"));
        }
        let mut bytes = vec![0; length];
        (self.file.read_exact_at(&mut bytes, at)).map_err(|error| error.to_string())?;
        Ok(bytes)
    }

    fn spend(&self, bytes: usize) -> Result<(), String> {
        let less = |left: u64| left.checked_sub(bytes as u64);
        match (self.left).fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
            Ok(_) => Ok(()),
            Err(_) => Err("becomes more bytes than its rows can have".to_owned()),
        }
    }
}

/// The pages of one column of one row group.
pub(crate) struct ColumnPages {
    bytes: Arc<TableBytes>,
    column: Physical,
    is_optional: bool,
    is_compressed: bool,
    at: u64,
    end: u64,
    values_left: u64,
}

impl ColumnPages {
    /// The pages where the file's metadata says; `rows` is how many values they may have.
    pub fn new(
        bytes: &Arc<TableBytes>,
        column: &ColumnChunkMetaData,
        rows: u64,
    ) -> Result<Self, String> {
        let is_compressed = match column.compression() {
            Compression::UNCOMPRESSED => false,
            Compression::ZSTD(_) => true,
            other => return Err(format!("is compressed by {other}, not by Zstandard")),
        };
        let first = column.dictionary_page_offset();
        let at = u64::try_from(first.unwrap_or_else(|| column.data_page_offset()));
        let length = u64::try_from(column.compressed_size());
        let (Ok(at), Ok(length)) = (at, length) else {
            return Err("has a negative offset or size".to_owned());
        };
        match at.checked_add(length) {
            Some(end) if end <= bytes.size_bytes => Ok(Self {
                bytes: Arc::clone(bytes),
                column: column.column_type(),
                is_optional: column.column_descr().max_def_level() > 0,
                is_compressed,
                at,
                end,
                values_left: rows,
            }),
            _ => Err(format!("has no {length} bytes at {at}")),
        }
    }

    fn next_page(&mut self) -> Result<Option<Page>, String> {
        while self.at < self.end {
            let header = self.header()?;
            if header.kind == Kind::Index {
                self.at += header.compressed_bytes as u64;
                continue;
            }
            let buf = self.body(header)?;
            return self.page(header, buf).map(Some);
        }
        Ok(None)
    }

    fn header(&mut self) -> Result<Header, String> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let bytes = self.bytes.range(self.at, left.min(MOST_HEADER_BYTES))?;
        let (header, length) = Header::read(&bytes).ok_or("has a damaged or unknown page")?;
        self.at += length as u64;
        if header.compressed_bytes > left - length {
            return Err("has a page beyond its end".to_owned());
        }
        let size_bytes = header.compressed_bytes.max(header.plain_bytes);
        if size_bytes > MOST_PAGE_BYTES {
            return Err(format!(
                "has a page of {size_bytes} bytes, above {MOST_PAGE_BYTES}"
            ));
        }
        Ok(header)
    }

    /// The page as its header describes it, decompressed.
    fn body(&mut self, header: Header) -> Result<Bytes, String> {
        self.bytes.spend(header.plain_bytes)?;
        let bytes = self.bytes.range(self.at, header.compressed_bytes)?;
        self.at += bytes.len() as u64;
        let levels = match header.kind {
            Kind::DataV2 { level_bytes, .. } => level_bytes,
            _ => 0,
        };
        let is_plain = matches!(
            header.kind,
            Kind::DataV2 {
                compressed: false,
                ..
            }
        );
        let (Some((levels, values)), Some(room)) = (
            bytes.split_at_checked(levels),
            header.plain_bytes.checked_sub(levels),
        ) else {
            return Err("has a page shorter than its levels".to_owned());
        };
        let body = match self.is_compressed && !is_plain {
            true if room > 0 => {
                let values = zstd::bulk::decompress(values, room)
                    .map_err(|error| format!("has a damaged page: {error}"))?;
                [levels, &values].concat()
            }
            true => levels.to_vec(),
            false => bytes,
        };
        match body.len() == header.plain_bytes {
            true => Ok(Bytes::from(body)),
            false => Err("has a page of another length than its header states".to_owned()),
        }
    }

    /// What the decoder gets.
    fn page(&mut self, header: Header, buf: Bytes) -> Result<Page, String> {
        let (num_values, encoding) = (header.values, header.encoding);
        if header.kind == Kind::Dictionary {
            let least_bytes = match self.column {
                Physical::BYTE_ARRAY => 4,
                _ => 8,
            };
            if num_values as usize > buf.len() / least_bytes {
                return Err(format!("has no dictionary of {num_values} values"));
            }
            return Ok(Page::DictionaryPage {
                buf,
                num_values,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            });
        }
        let values = self.values_of(header, &buf).unwrap_or_default();
        require_counts(header, values)?;
        let left = self.values_left.checked_sub(u64::from(num_values));
        self.values_left = left.ok_or("has more values than there are rows")?;
        Ok(match header.kind {
            Kind::DataV2 {
                nulls, level_bytes, ..
            } => Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                num_nulls: nulls,
                num_rows: num_values,
                def_levels_byte_len: u32::try_from(level_bytes).unwrap_or(u32::MAX),
                rep_levels_byte_len: 0,
                is_compressed: false,
                statistics: None,
            },
            _ => Page::DataPage {
                buf,
                num_values,
                encoding,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                statistics: None,
            },
        })
    }

    /// What follows the levels of a page.
    fn values_of<'a>(&self, header: Header, page: &'a [u8]) -> Option<&'a [u8]> {
        match header.kind {
            Kind::DataV2 { level_bytes, .. } => page.get(level_bytes..),
            _ if self.is_optional => {
                let (length, rest) = page.split_first_chunk()?;
                rest.get(u32::from_le_bytes(*length) as usize..)
            }
            _ => Some(page),
        }
    }
}

/// Refuses a page whose values count themselves, and are more than its header states.
fn require_counts(header: Header, values: &[u8]) -> Result<(), String> {
    let sequences = match header.encoding {
        Encoding::DELTA_BINARY_PACKED | Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
        Encoding::DELTA_BYTE_ARRAY if values.len() > MOST_SHARING_BYTES => {
            return Err(format!(
                "has a page of texts above {MOST_SHARING_BYTES} bytes"
            ));
        }
        Encoding::DELTA_BYTE_ARRAY => 2,
        _ => return Ok(()),
    };
    let counts = counts_of_differences(values, sequences).ok_or("has a page cut short")?;
    match counts
        .iter()
        .all(|&count| count <= u64::from(header.values))
    {
        true => Ok(()),
        false => Err("has a page of more values than its header states".to_owned()),
    }
}

impl Iterator for ColumnPages {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for ColumnPages {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        self.next_page().map_err(ParquetError::General)
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        Err(ParquetError::General("pages are read in order".to_owned()))
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        Err(ParquetError::General("no page is skipped".to_owned()))
    }
}
