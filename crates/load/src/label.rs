//! Numbered texts: a prefix, and the value drawn last for another name.

use std::fmt::Write;

use crate::value::Value;

/// A label ready to write.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    prefix: String,
    of: usize,
    upper: bool,
}

impl Label {
    pub fn new(prefix: &str, of: usize, upper: bool) -> Self {
        Self {
            prefix: prefix.to_owned(),
            of,
            upper,
        }
    }

    /// Write `values[slot]` from the value that it is made from.
    pub fn write(&self, values: &mut [Value], slot: usize) {
        let [source, out] = values
            .get_disjoint_mut([self.of, slot])
            .expect("nothing is made of itself");
        let out = out.text_mut();
        out.push_str(&self.prefix);
        write!(out, "{source}").expect("a String takes any text");
        if self.upper {
            out.make_ascii_uppercase();
        }
    }
}
