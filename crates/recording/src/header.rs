//! The header of a Parquet page, and the counts within a page of differences.

use parquet::basic::Encoding;

use crate::thrift::{Thrift, kind};

/// The header of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// What the page holds.
    pub kind: Kind,
    /// Length of the page in the file.
    pub compressed_bytes: usize,
    /// Its length once it is decompressed.
    pub plain_bytes: usize,
    /// Values that it holds.
    pub values: u32,
    /// Encoding of its values.
    pub encoding: Encoding,
}

/// Kind of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Levels, then values.
    Data,
    /// The same; levels are never compressed, and have their length in the header.
    DataV2 {
        nulls: u32,
        level_bytes: usize,
        compressed: bool,
    },
    /// The values that other pages refer to.
    Dictionary,
    /// Nothing that is needed.
    Index,
}

impl Header {
    /// Reads a header from the front of some bytes, and gives its length too. `None` if it is damaged, or of a
    /// kind or an encoding that recordings do not have.
    pub fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let mut thrift = Thrift(bytes);
        let mut page = Fields::default();
        let mut parts: [Option<Fields>; 9] = Default::default();
        thrift.fields(|one, number, kind| match (number, kind) {
            (5..=8, kind::STRUCT) => {
                let mut part = Fields::default();
                one.fields(|one, number, kind| part.read(one, number, kind))?;
                parts[usize::try_from(number).ok()?] = Some(part);
                Some(())
            }
            _ => page.read(one, number, kind),
        })?;
        let (kind, values, encoding) = match page.get::<u8>(1)? {
            0 => {
                let part = parts[5].as_ref()?;
                // Levels of the other encoding have no length.
                (encoding_of(part.get(3)?)? == Encoding::RLE).then_some(())?;
                (Kind::Data, part.get(1)?, part.get(2)?)
            }
            1 => (Kind::Index, 0, 0),
            2 => (Kind::Dictionary, parts[7].as_ref()?.get(1)?, 0),
            3 => {
                let part = parts[8].as_ref()?;
                (part.get::<u8>(6)? == 0).then_some(())?; // there are no lists in a cell
                let kind = Kind::DataV2 {
                    nulls: part.get(2)?,
                    level_bytes: part.get(5)?,
                    compressed: !part.uncompressed,
                };
                (kind, part.get(1)?, part.get(4)?)
            }
            _ => return None,
        };
        let header = Self {
            kind,
            compressed_bytes: page.get(3)?,
            plain_bytes: page.get(2)?,
            values,
            encoding: encoding_of(encoding)?,
        };
        Some((header, bytes.len() - thrift.0.len()))
    }
}

/// The numbers of a structure, by the numbers of their fields.
#[derive(Default)]
struct Fields {
    numbers: [Option<i64>; 7],
    uncompressed: bool,
}

impl Fields {
    fn read(&mut self, thrift: &mut Thrift<'_>, number: i16, kind: u8) -> Option<()> {
        self.uncompressed |= (number, kind) == (7, kind::FALSE);
        let slot = usize::try_from(number).map(|number| self.numbers.get_mut(number));
        match (slot, kind) {
            (Ok(Some(slot)), kind::I32) => *slot = Some(thrift.signed()?),
            _ => thrift.skip(kind)?,
        }
        Some(())
    }

    fn get<T: TryFrom<i64>>(&self, number: usize) -> Option<T> {
        T::try_from(self.numbers[number]?).ok()
    }
}

/// Encodings of numbers, words, texts and truth values.
fn encoding_of(number: u8) -> Option<Encoding> {
    Some(match number {
        0 => Encoding::PLAIN,
        2 => Encoding::PLAIN_DICTIONARY,
        3 => Encoding::RLE,
        5 => Encoding::DELTA_BINARY_PACKED,
        6 => Encoding::DELTA_LENGTH_BYTE_ARRAY,
        7 => Encoding::DELTA_BYTE_ARRAY,
        8 => Encoding::RLE_DICTIONARY,
        _ => return None,
    })
}

/// How many values each of `blocks` sequences of differences states, which follow each other; `None` if one is
/// damaged. The decoder takes memory for as many.
pub(crate) fn counts_of_differences(values: &[u8], blocks: usize) -> Option<Vec<u64>> {
    let mut bytes = Thrift(values);
    let mut counts = Vec::with_capacity(blocks);
    for number in 1..=blocks {
        let (block, parts) = (bytes.unsigned()?, bytes.unsigned()?);
        let count = bytes.unsigned()?;
        bytes.signed()?;
        counts.push(count);
        if number < blocks {
            skip_differences(&mut bytes, block, parts, count.saturating_sub(1))?;
        }
    }
    Some(counts)
}

fn skip_differences(bytes: &mut Thrift<'_>, block: u64, parts: u64, values: u64) -> Option<()> {
    let in_part = block.checked_div(parts)?;
    let mut left = values;
    while left > 0 {
        bytes.signed()?;
        let widths = bytes.take(usize::try_from(parts).ok()?)?;
        for &width in widths {
            if left == 0 {
                break;
            }
            let length = u64::from(width).checked_mul(in_part)? / 8;
            bytes.take(usize::try_from(length).ok()?)?;
            left = left.saturating_sub(in_part);
        }
        (in_part > 0).then_some(())?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_of_each_kind_is_read() {
        let data = [
            0x15, 0, 0x15, 80, 0x15, 40, 0x2c, 0x15, 20, 0x15, 16, 0x15, 6, 0x15, 6, 0, 0,
        ];
        let (header, length) = Header::read(&[&data[..], &[7, 7]].concat()).unwrap();
        assert_eq!(length, data.len());
        assert_eq!((header.kind, header.values), (Kind::Data, 10));
        assert_eq!((header.plain_bytes, header.compressed_bytes), (40, 20));
        assert_eq!(header.encoding, Encoding::RLE_DICTIONARY);
        let dictionary = [0x15, 4, 0x15, 8, 0x15, 8, 0x4c, 0x15, 2, 0x15, 0, 0, 0];
        assert_eq!(Header::read(&dictionary).unwrap().0.kind, Kind::Dictionary);
        let uncompressed = [
            0x15, 6, 0x15, 8, 0x15, 8, 0x5c, 0x15, 2, 0x15, 0, 0x15, 2, 0x15, 0, 0x15, 4, 0x15, 0,
            0x12, 0, 0,
        ];
        let kind = Kind::DataV2 {
            nulls: 0,
            level_bytes: 2,
            compressed: false,
        };
        assert_eq!(Header::read(&uncompressed).unwrap().0.kind, kind);
    }

    #[test]
    fn a_header_that_states_a_negative_size_is_refused() {
        assert!(Header::read(&[0x15, 2, 0x15, 1, 0x15, 8, 0]).is_none());
        assert!(Header::read(&[0x15, 2, 0x15, 8, 0x15, 1, 0]).is_none());
        assert!(Header::read(&[0x15, 2, 0x15, 8, 0x15, 8, 0]).is_some());
    }

    #[test]
    fn differences_are_counted_past_their_blocks() {
        // Lengths 5, 5, 5 in one block of 128 in 4 parts of width 0, then two values without a block.
        let both = [128, 1, 4, 3, 10, 0, 0, 0, 0, 0, 128, 1, 4, 2, 10];
        assert_eq!(counts_of_differences(&both, 2).unwrap(), [3, 2]);
        assert_eq!(counts_of_differences(&both[..9], 2), None);
        let endless = [0, 4, 3, 10, 0, 0, 0, 0, 0];
        assert_eq!(counts_of_differences(&endless, 2), None);
    }
}
