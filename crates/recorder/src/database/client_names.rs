//! What programs are by their names, which are separated by spaces here: poolers, load generators, tools of servers.

use tierwise_recording::ClientKind;

use crate::database::rules;

/// Programs that keep connections for others or pass them on. By documentation of each.
const POOLERS: &str = "\
    pgbouncer pgbouncer-rr odyssey pgpool pgpool-II pgcat pgagroal pgdog pg_doorman supavisor spqr-router \
    pgbalancer proxysql maxscale mysqlrouter mysql-proxy mariadb-maxscale vtgate haproxy envoy nginx stunnel \
    stunnel4 socat docker-proxy cloud-sql-proxy cloud_sql_proxy rootlessport sshd";
/// Clients of benchmarks that cannot hold a database themselves.
const LOAD_GENERATORS: &str = "\
    pgbench sysbench mysqlslap mariadb-slap go-tpc tpcc_start tpcc_load hammerdbcli hammerdb redis-benchmark \
    memtier_benchmark mongo-perf cassandra-stress pgreplay";
/// Tools of servers that cannot hold a database themselves.
const TOOLS: &str = "\
    psql pg_dump pg_dumpall pg_restore pg_basebackup pg_isready pg_amcheck vacuumdb reindexdb clusterdb createdb \
    dropdb createuser dropuser pgcli mysql mariadb mysqldump mariadb-dump mysqlpump mysqlimport mariadb-import \
    mysqlcheck mariadb-check mysqlshow mariadb-show mysqladmin mariadb-admin mysqlbinlog mariadb-binlog mysqlsh \
    mycli mydumper myloader sqlcmd bcp tsql isql iusql sqlplus sqlldr expdp impdp redis-cli valkey-cli mongosh \
    cqlsh clickhouse-client";
/// Receivers of a server's log.
const RECEIVERS: &str = "pg_receivewal pg_receivexlog pg_recvlogical";
/// Ports on which servers of databases and their poolers listen by default.
pub const SERVER_PORTS: [u16; 14] = [
    1433, 1521, 3306, 4006, 5000, 5432, 5433, 6033, 6379, 6432, 6446, 6543, 9999, 27017,
];

/// What a program is by its name; none if the name says nothing.
#[must_use]
pub fn kind_of_name(name: &str) -> Option<ClientKind> {
    let among = |names: &str| names.split(' ').any(|known| known == name);
    if among(POOLERS) {
        Some(ClientKind::Pooler)
    } else if among(LOAD_GENERATORS) {
        Some(ClientKind::LoadGenerator)
    } else if among(TOOLS) {
        Some(ClientKind::Tool)
    } else if among(RECEIVERS) || is_server(name) {
        Some(ClientKind::Replica)
    } else {
        None
    }
}

/// Whether programs of this name are servers of databases.
pub fn is_server(name: &str) -> bool {
    rules::of_program(name).is_some_and(|rules| rules.is_server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_a_program_is() {
        assert_eq!(kind_of_name("pgbouncer"), Some(ClientKind::Pooler));
        assert_eq!(kind_of_name("sysbench"), Some(ClientKind::LoadGenerator));
        assert_eq!(kind_of_name("mariadb"), Some(ClientKind::Tool));
        assert_eq!(kind_of_name("postgres"), Some(ClientKind::Replica));
        assert_eq!(kind_of_name("db_bench"), None);
        assert_eq!(kind_of_name("sqlite3"), None);
        assert_eq!(kind_of_name("python3"), None);
    }
}
