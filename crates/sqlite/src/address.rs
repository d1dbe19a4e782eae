//! The address of a database for its connections.

use serde::Deserialize;
use tierwise_load::LoadError;

use crate::places::Places;

/// Where a database is, and how each connection to it is set up.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Address {
    /// Where its files are.
    pub places: Places,
    /// Names and values of PRAGMAs, executed in this order by each connection.
    pub pragmas: Vec<(String, String)>,
}

impl Address {
    /// Read it from JSON.
    ///
    /// # Errors
    /// If the text is no address, a directory is not there, or a PRAGMA is more than a word or a number.
    pub fn parse(json: &str) -> Result<Self, LoadError> {
        let mut address: Self =
            serde_json::from_str(json).map_err(|error| LoadError::Address(error.to_string()))?;
        let is_word = |text: &str| {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            !text.is_empty() && text.chars().all(is_part)
        };
        if let Some((name, value)) = address
            .pragmas
            .iter()
            .find(|(n, v)| !is_word(n) || !is_word(v))
        {
            return Err(LoadError::Address(format!(
                "PRAGMA {name} = {value} is no word or number"
            )));
        }
        let canonical = address.places.canonical();
        address.places = canonical.map_err(|error| LoadError::Address(error.to_string()))?;
        Ok(address)
    }
}
