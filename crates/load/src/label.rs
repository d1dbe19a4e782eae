//! Texts that number something: a prefix, and what was drawn last for another name.

use std::fmt::Write;

use crate::value::Value;
use crate::workload::GeneratorSpec;

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

    /// Write `values[slot]` from the value that it is made of.
    pub fn write(&self, values: &mut [Value], slot: usize) {
        let [source, out] = values
            .get_disjoint_mut([self.of, slot])
            .expect("a label is not of a label, so not of itself");
        let out = out.text_mut();
        out.push_str(&self.prefix);
        write!(out, "{source}").expect("a String takes any text");
        if self.upper {
            out.make_ascii_uppercase();
        }
    }
}

/// Refuse labels of labels: whatever else is drawn, labels come last.
pub(crate) fn check<'a>(
    named: impl Iterator<Item = (&'a str, &'a GeneratorSpec)> + Clone,
) -> Result<(), String> {
    let is_label = |name: &str| {
        let mut labels = named.clone().filter(|(_, spec)| spec.source().is_some());
        labels.any(|(label, _)| label == name)
    };
    for (name, spec) in named.clone() {
        if let Some(of) = spec.source().filter(|of| is_label(of)) {
            return Err(format!("{name} is a label of the label {of}"));
        }
    }
    Ok(())
}
