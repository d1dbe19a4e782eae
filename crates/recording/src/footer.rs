//! The schema in the metadata of a Parquet file, before the decoder builds it: that recurses as deep as it is nested.

use crate::thrift::{Thrift, kind};

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
