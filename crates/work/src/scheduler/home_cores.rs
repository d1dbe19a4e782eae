//! The core on which each thread ran.
//!
//! Kernels keep a thread on the core that holds its caches, so a thread keeps its core for a whole burst.
//! Threads that share a core wait for each other, so a replay takes all cores from the same burst.

use std::collections::BTreeMap;

use tierwise_recording::StateKind;

use crate::Session;
use crate::index::view::View;

/// Of each burst: the core on which these threads ran longest; none where they did not run.
pub(crate) fn of_threads(view: &View<'_>, threads: &[u32]) -> Vec<Option<u16>> {
    let bursts = &view.recording.about.bursts;
    let mut ran_ns: Vec<BTreeMap<u16, u64>> = vec![BTreeMap::new(); bursts.len()];
    for &thread in threads {
        let states = view.states(thread).iter();
        for state in states.filter(|state| state.kind == StateKind::Cpu) {
            let burst = bursts.partition_point(|burst| burst.end_ns <= state.start_ns);
            if let Some(cores) = ran_ns.get_mut(burst) {
                *cores.entry(state.cpu).or_default() += state.end_ns - state.start_ns;
            }
        }
    }
    let longest = |cores: BTreeMap<u16, u64>| {
        let longest = cores.into_iter().max_by_key(|&(_, ran_ns)| ran_ns);
        longest.map(|(core, _)| core)
    };
    ran_ns.into_iter().map(longest).collect()
}

/// The same of each client thread that serves sessions.
pub(crate) fn of_clients(view: &View<'_>, sessions: &[Session]) -> BTreeMap<u32, Vec<Option<u16>>> {
    let clients = sessions.iter().filter_map(|session| session.client);
    clients
        .map(|client| (client, of_threads(view, &[client])))
        .collect()
}
