//! Thrift's compact protocol, as far as a Parquet file's schema and the headers of its pages need it.

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
