//! Files made durable: what each sync was for, and what it made the device do.

use std::collections::BTreeMap;

use tierwise_recording::{Call, Role, UNKNOWN};

use crate::index::view::View;
use crate::page_cache::dirty_pages::DirtyPages;
use crate::storage::sync_scripts;
use crate::{Step, SyncScript};

/// The syncs of files other than the log, and what is known of the files.
pub(crate) struct Syncs {
    /// Scripts, by the order of syncs.
    pub(crate) scripts: Vec<SyncScript>,
    dirtied: DirtyPages,
    /// How far each file was written, and whether that was further than at its last sync.
    ends: BTreeMap<u32, (u64, bool)>,
}

impl Syncs {
    pub(crate) fn new(view: &View<'_>) -> Self {
        Self {
            scripts: Vec::new(),
            dirtied: DirtyPages::new(view),
            ends: BTreeMap::new(),
        }
    }

    /// The step of a call that makes a file durable.
    pub(crate) fn sync(&mut self, view: &View<'_>, role: Role, call: &Call) -> Step {
        let known = self.ends.get_mut(&call.file);
        let grew = known.is_some_and(|end| std::mem::take(&mut end.1));
        let mut script = if view.sees(view.device_of(call.file)) {
            sync_scripts::script(view, role, call)
        } else {
            sync_scripts::assumed(grew)
        };
        let dirtied = &self.dirtied;
        script
            .writes
            .retain(|&(sector, sectors)| !dirtied.before(role, sector, sectors, call.end_ns));
        script.range = view.address_space.range_of(call.file);
        Step::Sync {
            role,
            script: self.add(script),
        }
    }

    /// Keeps what a sync makes the device do; gives its number.
    pub(crate) fn add(&mut self, script: SyncScript) -> u32 {
        self.scripts.push(script);
        self.scripts.len() as u32 - 1
    }

    /// A file is written: how far it reaches.
    pub(crate) fn grow(&mut self, call: &Call) {
        if call.offset_bytes == UNKNOWN {
            return;
        }
        let end = call.offset_bytes.saturating_add(call.size_bytes);
        let known = self.ends.entry(call.file).or_insert((end, false));
        if end > known.0 {
            *known = (end, true);
        }
    }

    /// The steps of a call that deletes or shortens a file: what it held is never written.
    pub(crate) fn forget(&self, view: &View<'_>, call: &Call) -> Vec<Step> {
        let Some(role) = view.role(call.file) else {
            return Vec::new();
        };
        let forget = |(sector, sectors)| Step::Forget {
            role,
            sector,
            sectors,
        };
        view.address_space
            .cut_by(call)
            .into_iter()
            .map(forget)
            .collect()
    }
}
