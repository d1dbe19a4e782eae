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
    fn settings_that_commits_wait_for_are_named() {
        let limits = |rules: &EngineRules, name: &str, value: &str, replica| {
            let settings = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            rules.commit_limits(&settings, replica)
        };
        let standby = limits(&postgres::RULES, "synchronous_standby_names", "set", false);
        assert!(standby[0].contains("not modelled") && standby[0].contains("= set"));
        let names = "synchronous_standby_names";
        assert!(limits(&postgres::RULES, names, "", false).is_empty());
        assert!(
            limits(&postgres::RULES, names, "set", true).is_empty(),
            "it was recorded"
        );
        assert_eq!(
            limits(&postgres::RULES, "synchronous_commit", "off", false).len(),
            1
        );
        assert!(limits(&postgres::RULES, "synchronous_commit", "on", false).is_empty());
        for (name, value) in [
            ("innodb_flush_log_at_trx_commit", "2"),
            ("sync_binlog", "0"),
            ("binlog_group_commit_sync_delay", "1000"),
            ("rpl_semi_sync_master_enabled", "ON"),
        ] {
            assert_eq!(
                limits(&mariadb::RULES, name, value, false).len(),
                1,
                "{name}"
            );
        }
        assert!(
            limits(
                &mariadb::RULES,
                "innodb_flush_log_at_trx_commit",
                "1",
                false
            )
            .is_empty()
        );
        let delay = |value: &str| {
            let settings = BTreeMap::from([("commit_delay".to_owned(), value.to_owned())]);
            postgres::RULES.commit_delay(&settings)
        };
        assert_eq!(
            delay("20000").map(|one| (one.time_ns, one.siblings)),
            Some((20_000_000, 5))
        );
        assert_eq!(delay("-1"), None);
    }

    #[test]
    fn pings_are_told_from_the_shortest_statements() {
        // lib/pq's ";", a driver's empty statement, DO; COM_PING, and COM_QUERY with one letter.
        let postgres = [(7, 11), (6, 11), (20, 14)].map(|shape| postgres::RULES.is_ping(shape));
        assert_eq!(postgres, [true, true, false]);
        let mariadb = [(5, 11), (6, 11), (0, 11)].map(|shape| mariadb::RULES.is_ping(shape));
        assert_eq!(mariadb, [true, false, false]);
        assert!(!INFERRED.is_ping((1, 1)));
    }

    #[test]
    fn settings_are_read_by_their_engine_alone() {
        let direct = ("innodb_flush_method".to_owned(), "O_DIRECT".to_owned());
        let settings = BTreeMap::from([direct]);
        assert!(!mariadb::RULES.past_page_cache(&settings).is_empty());
        assert!(postgres::RULES.past_page_cache(&settings).is_empty());
    }
}
