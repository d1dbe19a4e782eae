//! Rules of each engine, as data: one file per engine. No code elsewhere checks an engine's name.
//!
//! An engine without a file here has [`INFERRED`]: mechanisms that its recordings do not show are left out,
//! and the limits of the work say so.

mod mariadb;
mod postgres;
mod rocksdb;
mod rules;
mod settings;
mod sqlite;

pub(crate) use rules::{EngineRules, FlushSharing, WriteAheadLog};

use rules::INFERRED;

static ENGINES: [EngineRules; 4] = [
    postgres::RULES,
    mariadb::RULES,
    sqlite::RULES,
    rocksdb::RULES,
];
static WITHOUT_RULES: EngineRules = INFERRED;

/// The rules of the named engine.
pub(crate) fn rules_of(name: &str) -> &'static EngineRules {
    let name = name.to_lowercase();
    let mut known = ENGINES.iter();
    known
        .find(|rules| name.contains(rules.name))
        .unwrap_or(&WITHOUT_RULES)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn rules_are_found_by_a_part_of_the_name() {
        assert_eq!(rules_of("PostgreSQL"), &postgres::RULES);
        assert_eq!(rules_of("mariadb-system"), &mariadb::RULES);
        assert_eq!(rules_of("toy"), &INFERRED);
        assert_eq!(rules_of(""), &INFERRED);
    }

    #[test]
    fn settings_are_read_by_their_engine_alone() {
        let direct = ("innodb_flush_method".to_owned(), "O_DIRECT".to_owned());
        let settings = BTreeMap::from([direct]);
        assert!(!mariadb::RULES.past_page_cache(&settings).is_empty());
        assert!(postgres::RULES.past_page_cache(&settings).is_empty());
    }
}
