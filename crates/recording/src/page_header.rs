//! The header of a Parquet page, and the counts within a page of differences.

use parquet::basic::Encoding;

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
        let mut page = ThriftFields::default();
        let mut parts: [Option<ThriftFields>; 9] = Default::default();
        thrift.fields(|one, number, kind| match (number, kind) {
            (5..=8, kind::STRUCT) => {
                let mut part = ThriftFields::default();
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
struct ThriftFields {
    numbers: [Option<i64>; 7],
    uncompressed: bool,
}

impl ThriftFields {
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

// Thrift's compact protocol, as far as a Parquet file's schema and the headers of its pages need it.

/// Nested structures and lists in what is skipped.
const DEEPEST: u8 = 8;

/// Kinds of fields.
pub(crate) mod kind {
    pub const TRUE: u8 = 1;
    pub const FALSE: u8 = 2;
    pub const BYTE: u8 = 3;
    pub const I16: u8 = 4;
    pub const I32: u8 = 5;
    pub const I64: u8 = 6;
    pub const DOUBLE: u8 = 7;
    pub const BINARY: u8 = 8;
    pub const LIST: u8 = 9;
    pub const SET: u8 = 10;
    pub const MAP: u8 = 11;
    pub const STRUCT: u8 = 12;
}

/// Reads bytes from the front; `None` where they end too early or mean nothing.
pub(crate) struct Thrift<'a>(pub &'a [u8]);

impl<'a> Thrift<'a> {
    /// Reads a structure; `each` has to read the field with that number and kind, or skip it.
    pub fn fields(&mut self, mut each: impl FnMut(&mut Self, i16, u8) -> Option<()>) -> Option<()> {
        let mut number = 0i16;
        loop {
            let begin = self.byte()?;
            let kind = begin & 0x0f;
            if kind == 0 {
                return Some(());
            }
            number = match begin >> 4 {
                0 => i16::try_from(self.signed()?).ok()?,
                step => number.checked_add(i16::from(step))?,
            };
            each(self, number, kind)?;
        }
    }

    /// Skips a field of a kind.
    pub fn skip(&mut self, kind: u8) -> Option<()> {
        self.skip_within(kind, DEEPEST)
    }

    fn skip_within(&mut self, kind: u8, deepest: u8) -> Option<()> {
        let deeper = deepest.checked_sub(1)?;
        match kind {
            kind::TRUE | kind::FALSE => Some(()),
            kind::BYTE => self.byte().map(drop),
            kind::I16 | kind::I32 | kind::I64 => self.unsigned().map(drop),
            kind::DOUBLE => self.take(8).map(drop),
            kind::BINARY => {
                let length = usize::try_from(self.unsigned()?).ok()?;
                self.take(length).map(drop)
            }
            kind::LIST | kind::SET => {
                let (many, kind) = self.list()?;
                self.skip_elements(many, &[kind], deeper)
            }
            kind::MAP => match self.unsigned()? {
                0 => Some(()),
                many => {
                    let kinds = self.byte()?;
                    self.skip_elements(many, &[kinds >> 4, kinds & 0x0f], deeper)
                }
            },
            kind::STRUCT => self.fields(|one, _, kind| one.skip_within(kind, deeper)),
            _ => None,
        }
    }

    /// Reads the beginning of a list: how many elements it has, and their kind.
    pub fn list(&mut self) -> Option<(u64, u8)> {
        let begin = self.byte()?;
        let many = match begin >> 4 {
            15 => self.unsigned()?,
            many => u64::from(many),
        };
        Some((many, begin & 0x0f))
    }

    /// Each has at least a byte: in a list, a truth value has one too.
    fn skip_elements(&mut self, many: u64, kinds: &[u8], deepest: u8) -> Option<()> {
        for _ in 0..many {
            for &kind in kinds {
                match kind {
                    kind::TRUE | kind::FALSE => _ = self.take(1)?,
                    kind => self.skip_within(kind, deepest)?,
                }
            }
        }
        Some(())
    }

    /// Takes bytes from the front.
    pub fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    /// A number in seven bits a byte, the lowest first.
    pub fn unsigned(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// The same with the sign in the lowest bit.
    pub fn signed(&mut self) -> Option<i64> {
        let value = self.unsigned()?;
        Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }
}

// The schema in the metadata of a Parquet file, before the decoder builds it: that recurses as deep as it is nested.

/// Most columns of a table, several times those of any.
const MOST_COLUMNS: u64 = 256;
/// Number of the list of the schema's elements in the metadata, and of an element's children in it.
const SCHEMA: i16 = 2;
const CHILDREN: i16 = 5;

/// Whether all elements of the schema but the first are columns, as in every table of a recording. `None` if the
/// metadata is damaged.
pub(crate) fn is_flat(metadata: &[u8]) -> Option<bool> {
    let mut flat = true;
    Thrift(metadata).fields(|one, number, kind| match (number, kind) {
        (SCHEMA, kind::LIST) => {
            flat &= schema_is_flat(one)?;
            Some(())
        }
        _ => one.skip(kind),
    })?;
    Some(flat)
}

fn schema_is_flat(thrift: &mut Thrift<'_>) -> Option<bool> {
    let (many, of) = thrift.list()?;
    if of != kind::STRUCT || many > MOST_COLUMNS {
        return Some(false);
    }
    let mut flat = true;
    for element in 0..many {
        let mut children = 0;
        thrift.fields(|one, number, kind| match (number, kind) {
            (CHILDREN, kind::I32) => {
                children = one.signed()?;
                Some(())
            }
            _ => one.skip(kind),
        })?;
        flat &= element == 0 || children == 0;
    }
    Some(flat)
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

    #[test]
    fn a_structure_is_read_and_what_is_unknown_is_skipped() {
        // 1: i32 = -3, 2: {1: binary "ab"}, 20: list of 2 truth values, 21: i64 = 150
        let bytes = [
            0x15, 5, 0x1c, 0x18, 2, b'a', b'b', 0, 0x09, 40, 0x21, 1, 2, 0x16, 0xac, 2, 0, 99,
        ];
        let (mut thrift, mut read) = (Thrift(&bytes), Vec::new());
        thrift
            .fields(|one, number, kind| match number {
                1 | 21 => one.signed().map(|value| read.push((number, value))),
                _ => one.skip(kind),
            })
            .unwrap();
        assert_eq!((read, thrift.0.len()), (vec![(1, -3), (21, 150)], 1));
    }

    #[test]
    fn what_ends_early_or_lies_about_its_size_is_refused() {
        let refused = |bytes: &[u8]| {
            let mut thrift = Thrift(bytes);
            thrift.fields(|one, _, kind| one.skip(kind)).is_none()
        };
        assert!(refused(&[0x15]));
        assert!(refused(&[
            0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0
        ]));
        assert!(refused(&[0x19, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x7f, 0]));
        assert!(refused(&[0x1c; 1000]), "nested without end");
        assert!(refused(&[
            0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1
        ]));
    }

    /// Metadata whose schema has elements with so many children.
    fn metadata(children: &[i8]) -> Vec<u8> {
        let many = u8::try_from(children.len()).expect("few") << 4;
        // Field 1: version 1; field 2: a list of structures.
        let mut bytes = vec![0x15, 0x02, 0x19, many | kind::STRUCT];
        for &count in children {
            bytes.extend([0x55, ((count << 1) ^ (count >> 7)).cast_unsigned(), 0x00]);
        }
        bytes.push(0x00);
        bytes
    }

    #[test]
    fn only_the_root_of_a_schema_has_children() {
        assert_eq!(is_flat(&metadata(&[2, 0, 0])), Some(true));
        assert_eq!(is_flat(&metadata(&[1, 1, 0])), Some(false));
        assert_eq!(is_flat(&metadata(&[1, -1])), Some(false));
        assert_eq!(is_flat(&[0x15]), None);
        let mut endless = vec![0x19, 0xf0 | kind::STRUCT, 0xff, 0xff, 0x03];
        endless.extend([0x55, 0x02, 0x00].repeat(10_000));
        assert_ne!(is_flat(&endless), Some(true));
    }
}
