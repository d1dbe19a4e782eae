//! A write-ahead log whose content committing sessions copy to the data file (SQLite's).
//!
//! Source: sqlite3.c. `sqlite3WalDefaultHook`: a session that commits and finds enough pages in the log runs
//! a checkpoint, unless another does. `walCheckpoint`: flush the log; write the last frame of each page to
//! its place, up to the read position of the oldest transaction; flush the data file, unless another session
//! has committed meanwhile. `walRestartLog`: a transaction that began when all frames had been copied
//! restarts the log, if no other reads in it. So on a slow device, where others commit during every
//! checkpoint, the log never restarts: its file grows, which costs each commit a journal write and a second
//! flush (fs/jbd2/commit.c). Left out: readers that block a checkpoint altogether (lock 0), rollbacks.

use tierwise_device::Nanos;
use tierwise_recording::Role;
use tierwise_work::CheckpointRules;

use crate::kernel::clock::TaskId;
use crate::kernel::machine::Machine;
use crate::kernel::task::Task;
use crate::stations::cores::Thread;

/// The log's frames, snapshots and checkpoints.
#[derive(Debug)]
pub(crate) struct CheckpointedLog<'a> {
    rules: &'a CheckpointRules,
    /// Page of each frame, as an index among those of the rules.
    frames: Vec<u32>,
    /// Page of the next frame.
    next: u32,
    /// Frames of the last commit.
    newest: u32,
    /// Frames of committed transactions.
    committed: u64,
    /// Frames already copied to the data file.
    checkpointed: u64,
    /// Whether a checkpoint runs, where it ends, and the pages it copies.
    in_checkpoint: bool,
    checkpoint_end: u64,
    pages: Vec<u64>,
    /// Length of the log's file.
    file_bytes: u64,
}

impl<'a> CheckpointedLog<'a> {
    pub(crate) fn new(rules: &'a CheckpointRules) -> Self {
        Self {
            rules,
            frames: Vec::new(),
            next: 0,
            newest: 0,
            committed: 0,
            checkpointed: 0,
            in_checkpoint: false,
            checkpoint_end: 0,
            pages: Vec::new(),
            file_bytes: rules.room_bytes,
        }
    }

    /// Snapshot of a transaction that begins now: the last frame it sees; none if it reads no frame.
    fn snapshot(&self) -> Option<u64> {
        (self.checkpointed != self.committed).then_some(self.committed)
    }

    /// Appends the next pages, in the recorded order of pages.
    fn append(&mut self, count: u32) {
        self.newest = count;
        let all = self.rules.pages.len().max(1) as u32;
        for _ in 0..count {
            self.frames.push(self.next);
            self.next = (self.next + 1) % all;
        }
    }

    /// Restarts the log at the beginning of its file.
    fn restart(&mut self) {
        self.frames.clear();
        (self.committed, self.checkpointed, self.checkpoint_end) = (0, 0, 0);
    }

    /// Processor time of a commit above (or below) the mean of recorded ones, because the file grows (or does not).
    pub(crate) fn growing_ns(&self) -> f64 {
        let grows = f64::from(u8::from(self.bytes() > self.file_bytes));
        let frames_ns = f64::from(self.newest) * f64::from(self.rules.growing_frame_ns);
        (grows - self.rules.growing_share) * (f64::from(self.rules.growing_ns) + frames_ns)
    }

    fn bytes(&self) -> u64 {
        let frames = self.frames.len() as u64 * u64::from(self.rules.frame_bytes);
        u64::from(self.rules.header_bytes) + frames
    }

    /// Whether the last frames extend the file; notes its new length.
    pub(crate) fn grows(&mut self) -> bool {
        let bytes = self.bytes();
        let grows = bytes > self.file_bytes;
        self.file_bytes = self.file_bytes.max(bytes);
        grows
    }

    /// Chooses the pages to copy: those whose last frame lies before `checkpoint_end`.
    fn choose_pages(&mut self, checkpoint_end: u64) {
        let frames = &self.frames[self.checkpointed as usize..self.committed as usize];
        let frames = (self.checkpointed..).zip(frames);
        let mut last: Vec<(u64, u64)> = frames
            .filter_map(|(frame, page)| Some((*self.rules.pages.get(*page as usize)?, frame)))
            .collect();
        last.sort_unstable();
        let lasts = last.chunk_by(|one, next| one.0 == next.0);
        let pages = lasts
            .filter_map(|same| same.last())
            .filter(|page| page.1 < checkpoint_end);
        self.pages.clear();
        self.pages.extend(pages.map(|page| page.0));
        self.checkpoint_end = checkpoint_end;
    }
}

impl Task<'_> {
    /// Appends a commit's pages; restarts the log if no session reads it.
    pub(crate) async fn append_frames(&self, count: u32) {
        let header = self.machine().append_frames(self.id, count);
        if let Some(script) = header {
            self.sync(Role::Log, script).await;
        }
    }

    /// Runs a checkpoint, if one is due.
    pub(crate) async fn checkpoint(&self) {
        let due = self.machine().begin_checkpoint(self.id);
        let Some((rules, pages)) = due else { return };
        self.sync(Role::Log, rules.log_script).await;
        let copy_ns = Nanos::from(rules.fixed_ns) + pages * Nanos::from(rules.page_ns);
        self.run(Thread::Server, copy_ns.max(1)).await;
        let script = self.machine().write_checkpoint();
        if let Some(script) = script {
            self.sync(Role::Data, script).await;
        }
        self.machine().end_checkpoint();
    }
}

impl<'a> Machine<'a> {
    /// Takes a snapshot for a session's transaction.
    pub(crate) fn take_snapshot(&mut self, id: TaskId) {
        if let Some(wal) = &self.wal {
            self.tasks[id.0 as usize].snapshot = wal.snapshot();
        }
    }

    /// Commits a session's frames.
    pub(crate) fn publish_frames(&mut self, id: TaskId) {
        self.task(id).snapshot = None;
        if let Some(wal) = &mut self.wal {
            wal.committed = wal.frames.len() as u64;
        }
    }

    /// The oldest snapshot of the other sessions.
    fn oldest_snapshot(&self, id: TaskId) -> Option<u64> {
        let tasks = (0..).zip(&self.tasks);
        let others = tasks.filter(|&(index, _)| TaskId(index) != id);
        others.filter_map(|(_, task)| task.snapshot).min()
    }

    /// Appends pages; returns the sync of a new header, where the log begins anew.
    fn append_frames(&mut self, id: TaskId, count: u32) -> Option<u32> {
        let unread = self.oldest_snapshot(id).is_none() && self.task(id).snapshot.is_none();
        let wal = self.wal.as_mut()?;
        if unread && wal.checkpointed > 0 && wal.checkpointed == wal.committed {
            wal.restart();
        }
        let begins = wal.frames.is_empty();
        wal.append(count);
        let script = wal.rules.header_script;
        if let Some(log) = self.log.as_mut().filter(|_| begins) {
            log.restart_file();
        }
        begins.then_some(script)
    }

    /// Replaces the log's file by a new one.
    pub(crate) fn recreate_log(&mut self) {
        if let Some(wal) = &mut self.wal {
            wal.restart();
            wal.file_bytes = 0;
        }
    }

    /// Begins a checkpoint, if one is due and can copy anything: its rules and number of pages.
    fn begin_checkpoint(&mut self, id: TaskId) -> Option<(&'a CheckpointRules, u64)> {
        let oldest = self.oldest_snapshot(id);
        let wal = self.wal.as_mut()?;
        let end = wal.committed.min(oldest.unwrap_or(u64::MAX));
        let due = wal.committed >= u64::from(wal.rules.after_pages);
        if !due || wal.in_checkpoint || end <= wal.checkpointed {
            return None;
        }
        wal.in_checkpoint = true;
        wal.choose_pages(end);
        Some((wal.rules, wal.pages.len() as u64))
    }

    /// Writes a checkpoint's pages into the page cache; returns the sync of the data, unless somebody has committed
    /// meanwhile: a recorded one of a similar number of pages.
    fn write_checkpoint(&mut self) -> Option<u32> {
        let now = self.clock.now();
        let wal = self.wal.as_ref()?;
        for page in &wal.pages {
            let sectors = wal.rules.page_sectors;
            self.pages.dirty.write(now, Role::Data, *page, sectors);
        }
        self.wake_flusher();
        let wal = self.wal.as_ref()?;
        if wal.checkpoint_end != wal.committed {
            return None;
        }
        let similar = similar_flushes(&wal.rules.scripts, wal.pages.len() as u32);
        Some(similar[self.random.below(similar.len())].1)
    }

    fn end_checkpoint(&mut self) {
        if let Some(wal) = &mut self.wal {
            wal.checkpointed = wal.checkpoint_end;
            wal.in_checkpoint = false;
        }
    }
}

/// Recorded flushes of a similar number of pages: from half to twice as many, else the nearest.
fn similar_flushes(scripts: &[(u32, u32)], pages: u32) -> &[(u32, u32)] {
    let from = scripts.partition_point(|script| script.0 < pages / 2);
    let to = scripts.partition_point(|script| script.0 <= pages.saturating_mul(2));
    if from < to {
        return &scripts[from..to];
    }
    let nearest = from.min(scripts.len() - 1);
    &scripts[nearest..=nearest]
}
