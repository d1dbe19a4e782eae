//! Rows in the text format of COPY.

use std::fmt::Write;

use bytes::{BufMut, BytesMut};

use crate::value::Value;

/// Add one line.
pub(super) fn write_row(row: &[Value], out: &mut BytesMut) {
    for (index, value) in row.iter().enumerate() {
        if index > 0 {
            out.put_u8(b'\t');
        }
        match value {
            Value::Text(text) => write_text(text, out),
            number => write!(out, "{number}").expect("memory takes all text"),
        }
    }
    out.put_u8(b'\n');
}

fn write_text(text: &str, out: &mut BytesMut) {
    let special = |byte: &u8| matches!(byte, b'\\' | b'\t' | b'\n' | b'\r');
    if !text.as_bytes().iter().any(special) {
        return out.put_slice(text.as_bytes());
    }
    for &byte in text.as_bytes() {
        match byte {
            b'\\' => out.put_slice(b"\\\\"),
            b'\t' => out.put_slice(b"\\t"),
            b'\n' => out.put_slice(b"\\n"),
            b'\r' => out.put_slice(b"\\r"),
            plain => out.put_u8(plain),
        }
    }
}
