//! Names of the system calls that are traced, against the kernel's headers.

use std::collections::HashSet;

use crate::tests::kernel_table;
use crate::tracer::tracepoints::{RESULTS, SYSTEM_CALLS};

/// Calls that the headers of Debian 12 are too old to name, and one that has another name there.
const NOT_IN_HEADERS: [&str; 3] = ["futex_wait", "futex_wake", "sendfile64"];

#[test]
fn a_kernel_has_each_call_that_is_traced() {
    let (Some(ours), Some(generic)) = (
        kernel_table::numbers("x86_64"),
        kernel_table::numbers("aarch64"),
    ) else {
        return;
    };
    let named = |call: &&str| {
        ours.contains_key(*call) || generic.contains_key(*call) || NOT_IN_HEADERS.contains(call)
    };
    let results = RESULTS.iter().flat_map(|(calls, _)| calls.split(' '));
    let traced: Vec<&str> = SYSTEM_CALLS.split(' ').chain(results).collect();
    assert_eq!(traced.iter().find(|call| !named(call)), None);
    let once: HashSet<_> = traced.iter().collect();
    assert_eq!(once.len(), traced.len());
}
