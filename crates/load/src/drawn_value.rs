//! A value that a generator draws and a statement binds.

use std::fmt::{Display, Formatter};

use serde::Deserialize;

/// One value, independent of any engine's types.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged)]
pub enum DrawnValue {
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// Text; also any value that an engine reads from text, such as a date or a UUID.
    Text(String),
}

impl DrawnValue {
    /// The whole number, if it is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            Self::Float(_) | Self::Text(_) => None,
        }
    }

    /// An empty text to write into, which keeps the memory of the previous text.
    pub(crate) fn text_mut(&mut self) -> &mut String {
        if !matches!(self, Self::Text(_)) {
            *self = Self::Text(String::new());
        }
        let Self::Text(text) = self else {
            unreachable!("made text above")
        };
        text.clear();
        text
    }
}

impl Display for DrawnValue {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Int(number) => write!(out, "{number}"),
            Self::Float(number) => write!(out, "{number}"),
            Self::Text(text) => out.write_str(text),
        }
    }
}
