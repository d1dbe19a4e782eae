//! Syncs of files: their role and their device requests.

use std::collections::BTreeMap;

use tierwise_recording::{BlockOp, Call, Role, UNKNOWN};

use crate::index::sizes::{PAGE_BYTES, PAGE_SECTORS};
use crate::index::view::View;
use crate::page_cache::dirty_pages::DirtyPages;
use crate::storage::sync_scripts;
use crate::{Step, SyncScript};

/// An empty range.
const NOTHING: (u64, u64) = (1, 1);

/// The syncs of files other than the log, with the files' state.
pub(crate) struct Syncs {
    /// Scripts, in the order of syncs.
    pub(crate) scripts: Vec<SyncScript>,
    dirtied: DirtyPages,
    written: BTreeMap<u32, Written>,
    /// Of each directory that was synced, a file in it that has a role.
    directories: BTreeMap<u32, Option<u32>>,
}

/// A file with a role in a directory.
fn file_within(view: &View<'_>, directory: u32) -> Option<u32> {
    let files = &view.recording.files;
    let folder = files.get(directory as usize)?.path.trim_end_matches('/');
    let within = |path: &str| {
        let rest = path
            .strip_prefix(folder)
            .and_then(|rest| rest.strip_prefix('/'));
        rest.is_some_and(|name| !name.contains('/'))
    };
    let found = files
        .iter()
        .position(|file| file.role.is_some() && within(&file.path));
    found.map(|file| file as u32)
}

/// Writes of calls to one file.
#[derive(Default)]
struct Written {
    /// End of the written part of the file.
    end: u64,
    since: SinceSync,
}

/// Bytes written since its last sync.
#[derive(Default)]
struct SinceSync {
    /// Whether these writes extended it.
    grew: bool,
    /// Sectors of whole pages; neighbouring small writes count once.
    sectors: u64,
    last_page: Option<u64>,
}

impl SinceSync {
    /// Bytes from an offset to an end were written.
    fn write(&mut self, from: u64, to: u64) {
        let (first, last) = (from / PAGE_BYTES, to.saturating_sub(1) / PAGE_BYTES);
        let again = self.last_page.replace(last) == Some(first);
        let pages = (last.saturating_sub(first) + 1) - u64::from(again);
        self.sectors = self.sectors.saturating_add(pages * PAGE_SECTORS);
    }
}

impl Syncs {
    pub(crate) fn new(view: &View<'_>) -> Self {
        Self {
            scripts: Vec::new(),
            dirtied: DirtyPages::new(view),
            written: BTreeMap::new(),
            directories: BTreeMap::new(),
        }
    }

    /// The step of a call that syncs a file.
    pub(crate) fn sync(&mut self, view: &View<'_>, role: Role, call: &Call) -> Step {
        let written = self.written.get_mut(&call.file);
        let since = written.map_or_else(SinceSync::default, |one| std::mem::take(&mut one.since));
        let mut script = if view.sees(view.device_of(call.file)) {
            sync_scripts::script(view, role, call)
        } else {
            sync_scripts::assumed(since.grew)
        };
        self.leave_out_dirty(view, role, call, (&mut script.writes, since.sectors));
        script.range = view.address_space.range_of(call.file);
        script.shared = view.engine.second_log == Some(role);
        Step::Sync {
            role,
            script: self.add(script),
        }
    }

    /// The step of a call that syncs a directory: names of files in it. It writes to the journal of their
    /// file system, and no data.
    pub(crate) fn sync_directory(&mut self, view: &View<'_>, call: &Call) -> Option<Step> {
        let found = self.directories.entry(call.file);
        let file = (*found.or_insert_with(|| file_within(view, call.file)))?;
        let (role, device) = (view.role(file)?, view.device_of(file));
        let mut script = if view.sees(device) {
            sync_scripts::script_on(view, role, device, call)
        } else {
            sync_scripts::assumed(true)
        };
        script.writes.clear();
        script.range = NOTHING;
        Some(Step::Sync {
            role,
            script: self.add(script),
        })
    }

    /// Drops writes that a replay's sync makes because a step dirtied the pages. A file that is recreated for
    /// each transaction lies elsewhere each time, so its own writes are dropped up to the size of the calls'
    /// writes to it.
    fn leave_out_dirty(
        &self,
        view: &View<'_>,
        role: Role,
        call: &Call,
        (writes, mut left): (&mut Vec<(u64, u32)>, u64),
    ) {
        let count = writes.len();
        writes.retain(|&(at, sectors)| !self.dirtied.before(role, at, sectors, call.end_ns));
        if left == 0 || writes.is_empty() || writes.len() < count {
            return;
        }
        let blocks = view.blocks(call.start_ns, call.end_ns).iter();
        let own: Vec<u64> = blocks
            .filter(|block| block.op == BlockOp::Write && block.file == call.file)
            .filter_map(|block| view.address_space.sector_of(role, block))
            .collect();
        writes.retain(|&(sector, sectors)| {
            let again = own.contains(&sector) && u64::from(sectors) <= left;
            left -= if again { u64::from(sectors) } else { 0 };
            !again
        });
    }

    /// Stores a sync's script; returns its number.
    pub(crate) fn add(&mut self, script: SyncScript) -> u32 {
        self.scripts.push(script);
        self.scripts.len() as u32 - 1
    }

    /// A file is written: updates its end.
    pub(crate) fn grow(&mut self, call: &Call) {
        if call.offset_bytes == UNKNOWN {
            return;
        }
        let end = call.offset_bytes.saturating_add(call.size_bytes);
        let known = self.written.contains_key(&call.file);
        let written = self.written.entry(call.file).or_default();
        written.since.write(call.offset_bytes, end);
        written.since.grew |= known && end > written.end;
        written.end = written.end.max(end);
    }

    /// The steps of a call that deletes or truncates a file: the removed content is never written.
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
