//! Syncs of files other than the log: their steps, and writes that replay's dirty pages make.

use std::collections::BTreeMap;

use tierwise_recording::{BlockOp, Call, Role, UNKNOWN};

use crate::page_cache::dirty_pages::DirtyPages;
use crate::rows::{PAGE_BYTES, PAGE_SECTORS, Rows};
use crate::storage::sync_scripts;
use crate::view::View;
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

/// Writes of calls to one file.
#[derive(Default)]
struct Written {
    /// End of the written part of the file, if it was written.
    end: Option<u64>,
    /// Whether writes since its last sync extended it.
    grew: bool,
    /// Sectors of whole pages written since its last sync; neighbouring small writes count once.
    sectors: u64,
    last_page: Option<u64>,
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
        let written = self.written.entry(call.file).or_default();
        let sectors = std::mem::take(&mut written.sectors);
        let grew = std::mem::take(&mut written.grew);
        written.last_page = None;
        let mut script = match view.sees(view.device_of(call.file)) {
            true => sync_scripts::script(view, role, call),
            false => sync_scripts::assumed(grew),
        };
        self.leave_out_dirty(view, role, call, &mut script.writes, sectors);
        script.range = view.address_space.range_of(call.file);
        script.shared = view.engine.second_log == Some(role);
        let script = self.add(script);
        Step::Sync { role, script }
    }

    /// The step of a call that syncs a directory: names of files in it. It writes to the journal of their
    /// file system, and no data.
    pub(crate) fn sync_directory(&mut self, view: &View<'_>, call: &Call) -> Option<Step> {
        let found = self.directories.entry(call.file);
        let file = (*found.or_insert_with(|| file_within(view, call.file)))?;
        let (role, device) = (view.role(file)?, view.device_of(file));
        let mut script = match view.sees(device) {
            true => sync_scripts::script_on(view, role, device, call),
            false => sync_scripts::assumed(true),
        };
        script.writes.clear();
        script.range = NOTHING;
        let script = self.add(script);
        Some(Step::Sync { role, script })
    }

    /// Drops writes that a replay's sync makes because a step dirtied the pages. A file that is recreated for
    /// each transaction lies elsewhere each time, so its own writes are dropped up to the size of the calls'
    /// writes to it, `left` sectors.
    fn leave_out_dirty(
        &self,
        view: &View<'_>,
        role: Role,
        call: &Call,
        writes: &mut Vec<(u64, u32)>,
        mut left: u64,
    ) {
        let count = writes.len();
        writes.retain(|&(at, sectors)| !self.dirtied.before((role, at, sectors), call.end_ns));
        if left == 0 || writes.is_empty() || writes.len() < count {
            return;
        }
        let blocks = view.blocks_during(call).iter();
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
        let from = call.offset_bytes;
        if from == UNKNOWN {
            return;
        }
        let end = from.saturating_add(call.size_bytes);
        let written = self.written.entry(call.file).or_default();
        let (first, last) = (from / PAGE_BYTES, end.saturating_sub(1) / PAGE_BYTES);
        let again = written.last_page.replace(last) == Some(first);
        let pages = (last.saturating_sub(first) + 1) - u64::from(again);
        written.sectors = written.sectors.saturating_add(pages * PAGE_SECTORS);
        written.grew |= written.end.is_some_and(|before| end > before);
        written.end = written.end.max(Some(end));
    }
}

/// A file with a role in a directory.
fn file_within(rows: &Rows<'_>, directory: u32) -> Option<u32> {
    let files = &rows.recording.files;
    let folder = files.get(directory as usize)?.path.trim_end_matches('/');
    let within = |path: &str| {
        let rest = path.strip_prefix(folder);
        let name = rest.and_then(|rest| rest.strip_prefix('/'));
        name.is_some_and(|name| !name.contains('/'))
    };
    let mut found = (0..).zip(files);
    let found = found.find(|(_, file)| file.role.is_some() && within(&file.path));
    found.map(|(number, _)| number)
}
