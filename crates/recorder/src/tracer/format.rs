//! Where the fields of a tracepoint's records lie: the kernel's `format` files.

/// One field of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Where it begins.
    pub offset: usize,
    /// How long it is.
    pub size: usize,
    signed: bool,
}

impl Field {
    /// The number in it, sign extended where the field is signed; none where the record is too short.
    pub fn number(self, record: &[u8]) -> Option<u64> {
        let bytes = self.bytes(record)?;
        let mut wide = [0; 8];
        wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let shift = 64 - 8 * u32::try_from(bytes.len()).ok()?;
        let raw = u64::from_le_bytes(wide) << shift;
        Some(if self.signed {
            (raw.cast_signed() >> shift).cast_unsigned()
        } else {
            raw >> shift
        })
    }

    /// The bytes of it.
    pub fn bytes(self, record: &[u8]) -> Option<&[u8]> {
        (self.size > 0).then_some(())?;
        record.get(self.offset..self.offset + self.size)
    }

    /// The text in it, up to the first zero.
    pub fn text(self, record: &[u8]) -> Option<String> {
        let bytes = self.bytes(record)?;
        let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}

/// A tracepoint's number and fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// Number that begins its records.
    pub id: u16,
    fields: Vec<(String, Field)>,
}

impl Format {
    /// From the text of `events/SYSTEM/NAME/format`; none if that is something else.
    pub fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID: "))?;
        Some(Self {
            id: id.trim().parse().ok()?,
            fields: fields(text),
        })
    }

    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<Field> {
        let found = self.fields.iter().find(|(own, _)| own == name);
        found.map(|&(_, field)| field)
    }
}

/// Lines `field:TYPE NAME;  offset:N;  size:N;  signed:N;`, as `header_page` has them too.
pub fn fields(text: &str) -> Vec<(String, Field)> {
    text.lines().filter_map(field).collect()
}

fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';');
    let declaration = parts.next()?.split('[').next()?;
    let name = declaration.rsplit([' ', '*']).next()?;
    let mut number =
        |key: &str| -> Option<usize> { parts.next()?.trim().strip_prefix(key)?.parse().ok() };
    let field = Field {
        offset: number("offset:")?,
        size: number("size:")?,
        signed: number("signed:")? == 1,
    };
    (field.offset < 1 << 16 && field.size < 1 << 16).then(|| (name.to_owned(), field))
}
