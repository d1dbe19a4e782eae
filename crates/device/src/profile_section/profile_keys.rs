//! What a profile's keys may hold, noted while they are read: from this the JSON Schema of profiles is made.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::rc::Rc;

use serde::Serialize;

/// A whole number of a field.
pub(crate) trait WholeNumber:
    Copy + PartialOrd + Display + TryFrom<i64> + Into<u64>
{
}

impl WholeNumber for u32 {}
impl WholeNumber for u64 {}

/// What the value of a key must be. Bounds are in the unit of the key and belong to the range.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "form", rename_all = "kebab-case")]
pub enum ValueForm {
    /// Known to exist, but no value was read.
    Unread,
    /// A number.
    Number {
        /// Least value.
        least: f64,
        /// Greatest value.
        most: f64,
    },
    /// A whole number.
    Integer {
        /// Least value.
        least: f64,
        /// Greatest value.
        most: f64,
    },
    /// A number or a list of numbers.
    Numbers {
        /// Least value.
        least: f64,
        /// Greatest value.
        most: f64,
        /// Length of the longest list.
        longest: usize,
    },
    /// A list of pairs of numbers.
    Pairs {
        /// Least values of the first and of the second number.
        least: [f64; 2],
        /// Greatest values of the first and of the second number.
        most: [f64; 2],
    },
    /// True or false.
    Flag,
    /// Any text.
    Text,
    /// One of these words.
    Word {
        /// The words.
        words: Vec<String>,
    },
    /// A table of pairs under the names of other keys: the least and the greatest number of each.
    Ranges,
    /// A table of texts under free keys.
    Texts {
        /// Length of the shortest text, in characters.
        shortest: usize,
    },
    /// A table.
    Table,
    /// A list of one or more tables.
    Tables,
}

/// A key of a profile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProfileKey {
    /// Names from the outermost table in, joined by dots; `[]` follows the name of a list of tables.
    pub path: String,
    /// Whether the table that holds it must have it.
    pub required: bool,
    /// What it holds.
    #[serde(flatten)]
    pub form: ValueForm,
}

/// The keys of one profile, shared by its sections.
#[derive(Clone, Default)]
pub(crate) struct ProfileKeys(Rc<RefCell<BTreeMap<String, (bool, ValueForm)>>>);

impl ProfileKeys {
    /// Notes that a key may be absent.
    pub(super) fn note_optional(&self, path: &str) {
        let mut keys = self.0.borrow_mut();
        keys.entry(key_without_indices(path))
            .or_insert((false, ValueForm::Unread))
            .0 = false;
    }

    /// Notes what a key holds; it is required unless it was noted as optional before.
    pub(super) fn note(&self, path: &str, form: ValueForm) {
        let mut keys = self.0.borrow_mut();
        keys.entry(key_without_indices(path))
            .or_insert((true, ValueForm::Unread))
            .1 = form;
    }

    /// All that were noted, in the order of their paths.
    pub(crate) fn into_list(self) -> Vec<ProfileKey> {
        let keys = self.0.take();
        let key = |(path, (required, form))| ProfileKey {
            path,
            required,
            form,
        };
        keys.into_iter().map(key).collect()
    }
}

pub(super) fn number_form(range: &RangeInclusive<f64>) -> ValueForm {
    ValueForm::Number {
        least: *range.start(),
        most: *range.end(),
    }
}

pub(super) fn integer_form<T: WholeNumber>(range: &RangeInclusive<T>) -> ValueForm {
    let (least, most): (u64, u64) = ((*range.start()).into(), (*range.end()).into());
    ValueForm::Integer {
        least: least as f64,
        most: most as f64,
    }
}

/// `zones[3].spares` as `zones[].spares`.
fn key_without_indices(path: &str) -> String {
    let mut inside = false;
    let keep = |letter: &char| {
        inside = *letter == '[' || inside && *letter != ']';
        !inside || *letter == '['
    };
    path.chars().filter(keep).collect()
}
