//! The programs at the other end of a server's sessions, and what programs are by their names.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;

use tierwise_recording::{ClientKind, ClientProgram};

use crate::database::rules::{self, is_listed_name};
use crate::host::processes::{self, ProcessTree};
use crate::host::sockets::{ConnectionPeer, ListeningAddresses, SocketTable, socket_inodes};

/// The programs that hold sessions of a server, those with most sessions first; peers on other hosts last.
#[must_use]
pub fn client_programs_of_server(pids: &[i32], sockets: &SocketTable) -> Vec<ClientProgram> {
    let mut held: BTreeMap<i32, u32> = BTreeMap::new();
    let mut addresses: BTreeSet<IpAddr> = BTreeSet::new();
    let mut remote = 0;
    for peer in sockets.accepted(pids) {
        match peer {
            // A connection that a fork inherited is that of the process that opened it, the older one.
            ConnectionPeer::Processes(there) => {
                let oldest = there.into_iter().min().unwrap_or(0);
                *held.entry(oldest).or_default() += 1;
            }
            ConnectionPeer::Address(address, _) => {
                addresses.insert(address);
                remote += 1;
            }
        }
    }
    let mut programs: BTreeMap<String, ClientProgram> = BTreeMap::new();
    for (pid, sessions) in held {
        let (program, kind) = client_name_and_kind(pid, sockets);
        let client = programs.entry(program.clone()).or_insert(ClientProgram {
            program,
            kind,
            ..ClientProgram::default()
        });
        client.processes += 1;
        client.sessions += sessions;
        client.served += sockets.accepted(&[pid]).len() as u32;
    }
    let mut found: Vec<ClientProgram> = programs.into_values().collect();
    found.sort_by_key(|client| Reverse(client.sessions));
    if remote > 0 {
        found.push(ClientProgram {
            kind: ClientKind::Remote,
            processes: addresses.len() as u32,
            sessions: remote,
            ..ClientProgram::default()
        });
    }
    found
}

/// Adds what another look saw: of each program the most of both.
pub fn merge_client_programs(known: &mut Vec<ClientProgram>, seen: Vec<ClientProgram>) {
    for client in seen {
        let same = |known: &&mut ClientProgram| {
            (known.kind, &known.program) == (client.kind, &client.program)
        };
        match known.iter_mut().find(same) {
            Some(known) if known.sessions >= client.sessions => {}
            Some(known) => *known = client,
            None => known.push(client),
        }
    }
    known.sort_by_key(|client| (client.kind == ClientKind::Remote, Reverse(client.sessions)));
}

/// Name and kind of a client; a program that takes connections as a database does is a pooler.
fn client_name_and_kind(pid: i32, sockets: &SocketTable) -> (String, ClientKind) {
    let name = processes::program_name(pid);
    // The kernel's name is cut to 15 letters; that of the program's file is not.
    let file = processes::link_target_path(&format!("/proc/{pid}/exe"));
    let file = file.and_then(|file| Some(Path::new(&file).file_name()?.to_str()?.to_owned()));
    for known in [Some(name.clone()), file].into_iter().flatten() {
        if let Some(kind) = client_kind_of_program(&known) {
            return (known, kind);
        }
    }
    match listens_as_database(&sockets.listening(&[pid])) {
        true => (name, ClientKind::Pooler),
        false => (name, ClientKind::Application),
    }
}

fn listens_as_database(listening: &ListeningAddresses) -> bool {
    let socket = |path: &String| {
        let name = path.rsplit('/').next().unwrap_or_default();
        name.starts_with(".s.PGSQL.") || name.starts_with("mysql") || name.starts_with("proxysql")
    };
    let port = |port: &u16| SERVER_PORTS.contains(port);
    listening.paths.iter().any(socket) || listening.ports.iter().any(port)
}

/// Servers that some processes are connected to as clients: first processes on this host, and ports elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectedServers {
    /// First processes of servers on this host, behind poolers too.
    pub pids: BTreeSet<i32>,
    /// Whether one is connected to a server on another host, or one that cannot be seen.
    pub elsewhere: bool,
}

/// Servers that some processes are connected to; quick if they have no socket open.
#[must_use]
pub fn connected_servers_now(pids: &[i32]) -> ConnectedServers {
    match pids.iter().all(|&pid| socket_inodes(pid).is_empty()) {
        true => ConnectedServers::default(),
        false => connected_servers(pids, &SocketTable::now(), &ProcessTree::now()),
    }
}

fn connected_servers(
    pids: &[i32],
    sockets: &SocketTable,
    family: &ProcessTree,
) -> ConnectedServers {
    let mut found = ConnectedServers::default();
    let (mut looked_at, mut waiting) = (BTreeSet::new(), sockets.opened(pids));
    while let Some(peer) = waiting.pop() {
        match peer {
            ConnectionPeer::Processes(there) => {
                for pid in there {
                    if let Some(server) = family.first_of(pid, is_database_server_name) {
                        found.pids.insert(server);
                    } else if looked_at.insert(pid)
                        && client_name_and_kind(pid, sockets).1 == ClientKind::Pooler
                    {
                        waiting.extend(sockets.opened(&[pid]));
                    }
                }
            }
            ConnectionPeer::Address(_, port) => found.elsewhere |= SERVER_PORTS.contains(&port),
        }
    }
    found
}

/// Names of programs, separated by spaces, that keep connections for others or pass them on. By documentation of each.
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
const SERVER_PORTS: [u16; 14] = [
    1433, 1521, 3306, 4006, 5000, 5432, 5433, 6033, 6379, 6432, 6446, 6543, 9999, 27017,
];

/// What a program is by its name; none if the name says nothing.
#[must_use]
pub fn client_kind_of_program(name: &str) -> Option<ClientKind> {
    if is_listed_name(POOLERS, name) {
        Some(ClientKind::Pooler)
    } else if is_listed_name(LOAD_GENERATORS, name) {
        Some(ClientKind::LoadGenerator)
    } else if is_listed_name(TOOLS, name) {
        Some(ClientKind::Tool)
    } else if is_listed_name(RECEIVERS, name) || is_database_server_name(name) {
        Some(ClientKind::Replica)
    } else {
        None
    }
}

/// Whether programs of this name are servers of databases.
pub fn is_database_server_name(name: &str) -> bool {
    rules::rules_of_program(name).is_some_and(|rules| rules.is_server)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str, kind: ClientKind, sessions: u32) -> ClientProgram {
        ClientProgram {
            program: name.to_owned(),
            kind,
            sessions,
            processes: 1,
            served: 0,
        }
    }

    #[test]
    fn of_several_looks_the_one_with_most_sessions_counts() {
        let mut known = vec![program("api", ClientKind::Application, 2)];
        merge_client_programs(
            &mut known,
            vec![
                program("", ClientKind::Remote, 9),
                program("api", ClientKind::Application, 1),
                program("pgbouncer", ClientKind::Pooler, 8),
            ],
        );
        merge_client_programs(&mut known, vec![program("api", ClientKind::Application, 3)]);
        let shown: Vec<_> = known
            .iter()
            .map(|client| (&client.program[..], client.sessions))
            .collect();
        assert_eq!(shown, [("pgbouncer", 8), ("api", 3), ("", 9)]);
    }

    #[test]
    fn what_listens_as_a_database_does_is_one() {
        let listening = |path: &str, port: u16| ListeningAddresses {
            paths: BTreeSet::from([path.to_owned()]),
            ports: BTreeSet::from([port]),
        };
        assert!(listens_as_database(&listening("/tmp/.s.PGSQL.7000", 80)));
        assert!(listens_as_database(&listening("/tmp/app", 6432)));
        assert!(!listens_as_database(&listening("/tmp/app", 8080)));
    }

    #[test]
    fn names_tell_what_a_program_is() {
        assert_eq!(
            client_kind_of_program("pgbouncer"),
            Some(ClientKind::Pooler)
        );
        assert_eq!(
            client_kind_of_program("sysbench"),
            Some(ClientKind::LoadGenerator)
        );
        assert_eq!(client_kind_of_program("mariadb"), Some(ClientKind::Tool));
        assert_eq!(
            client_kind_of_program("postgres"),
            Some(ClientKind::Replica)
        );
        assert_eq!(client_kind_of_program("db_bench"), None);
        assert_eq!(client_kind_of_program("sqlite3"), None);
        assert_eq!(client_kind_of_program("python3"), None);
    }
}
