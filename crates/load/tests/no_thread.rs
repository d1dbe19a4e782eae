//! Clients where the system starts no thread. The limit is the process's own, so this test has a process to itself.

#[path = "clients/noting.rs"]
mod noting;

use noting::Noting;
use tierwise_load::{
    ClientPool, ClientTask, LoadError, ResolvedWorkload, RunControl, RunLimit, WorkloadPlan,
};

const WORKLOAD: &str = r#"{"name": "test", "think_ms": 0, "tables": [], "parameters": [], "transactions": [
  {"name": "one", "weight": 1, "autocommit": true, "steps": [{"repeat": 1, "draw": [], "sql": ["only"]}]}]}"#;

/// Sets the limit of the address space; the stack of a thread takes at least its 2 MiB.
fn limit_address_space(limit: libc::rlimit) {
    // SAFETY: the structure is whole and outlives the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
}

#[test]
fn a_thread_that_cannot_be_started_is_an_error() {
    let engine = Noting::new(|_, _| Ok(()));
    let plan = WorkloadPlan::new(&ResolvedWorkload::parse(WORKLOAD).unwrap()).unwrap();
    let mut pool =
        ClientPool::connect(engine.clone(), plan, 100, 1, &RunControl::default()).unwrap();
    let free = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = status.split(' ').next().unwrap().parse().unwrap();
    limit_address_space(libc::rlimit {
        rlim_cur: pages * 4096 + (1 << 20),
        ..free
    });
    let task = ClientTask::mix(RunLimit::Transactions(200));
    let failed = pool.run(task, &RunControl::default());
    limit_address_space(free);
    assert!(matches!(failed, Err(LoadError::Start(_))), "{failed:?}");
    let lost = pool.run(task, &RunControl::default());
    assert_eq!(lost.unwrap_err(), LoadError::Disconnected);
    pool.reconnect(&RunControl::default()).unwrap();
    assert_eq!(
        pool.run(task, &RunControl::default()).unwrap().transactions,
        200
    );
    assert!(!engine.logs().is_empty());
}
