//! The operating system's page cache: hits, dirty pages, write-back. Its requests go through `block`.

pub(crate) mod dirty_pages;
pub(crate) mod file_accesses;
pub(crate) mod hits;
pub(crate) mod write_back;

use tierwise_work::Work;

use crate::api::scenario::Scenario;
use crate::block::role_layout::RoleLayout;
use crate::page_cache::dirty_pages::{DirtyPages, dirty_limit_bytes};
use crate::page_cache::hits::CacheHits;
use crate::page_cache::write_back::WriteBackFlusher;
use crate::program::Program;

/// The page cache.
#[derive(Debug)]
pub(crate) struct SimulatedPageCache {
    pub(crate) hits: CacheHits,
    pub(crate) dirty: DirtyPages,
    pub(crate) flusher: WriteBackFlusher,
}

impl SimulatedPageCache {
    pub(crate) fn new(program: &Program, scenario: &Scenario, layout: &RoleLayout) -> Self {
        let work = &program.work;
        let memory_bytes = scenario.memory_bytes.unwrap_or(work.memory_bytes);
        let memory_bytes = memory_bytes.max(1 << 20);
        let most_dirty_bytes = most_dirty_bytes(work, memory_bytes);
        Self {
            hits: CacheHits::new(program, scenario),
            dirty: DirtyPages::new(memory_bytes, most_dirty_bytes, |role| layout.sectors(role)),
            flusher: WriteBackFlusher::default(),
        }
    }
}

/// Most bytes that may be dirty at once: the observed maximum. If that filled a control group, more memory
/// adds as much.
fn most_dirty_bytes(work: &Work, memory_bytes: u64) -> u64 {
    if work.most_dirty_bytes <= dirty_limit_bytes(work.memory_bytes) {
        return work.most_dirty_bytes;
    }
    let more = memory_bytes.saturating_sub(work.memory_bytes);
    let less = work.memory_bytes.saturating_sub(memory_bytes);
    (work.most_dirty_bytes + more).saturating_sub(less)
}
