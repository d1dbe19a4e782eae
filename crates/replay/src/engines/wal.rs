//! Content of a write-ahead log that checkpoints copy to the data file (SQLite's).

use tierwise_work::CheckpointRules;

use crate::kernel::session::{NO_SNAPSHOT, NONE};

/// Recorded flushes of a similar number of pages: from half to twice as many, else the nearest.
pub(crate) fn similar_flushes(scripts: &[(u32, u32)], pages: u32) -> &[(u32, u32)] {
    let from = scripts.partition_point(|script| script.0 < pages / 2);
    let to = scripts.partition_point(|script| script.0 <= pages.saturating_mul(2));
    if from < to {
        return &scripts[from..to];
    }
    let nearest = from.min(scripts.len() - 1);
    &scripts[nearest..=nearest]
}

/// The log's frames, snapshots and checkpoints.
#[derive(Debug)]
pub(crate) struct CheckpointedLog<'a> {
    pub(crate) rules: &'a CheckpointRules,
    /// Page of each frame, as an index among those of the rules.
    pub(crate) frames: Vec<u32>,
    /// Page of the next frame.
    next: u32,
    /// Frames of the last commit.
    newest: u32,
    /// Frames of committed transactions.
    pub(crate) committed: u64,
    /// Frames already copied to the data file.
    pub(crate) checkpointed: u64,
    /// The session that runs a checkpoint, or [`NONE`].
    pub(crate) checkpointer: u32,
    /// Where that checkpoint ends, and the pages it copies.
    pub(crate) checkpoint_end: u64,
    pub(crate) pages: Vec<u64>,
    /// Length of the log's file.
    pub(crate) file_bytes: u64,
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
            checkpointer: NONE,
            checkpoint_end: 0,
            pages: Vec::new(),
            file_bytes: rules.room_bytes,
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.frames.len() as u64
    }

    /// Snapshot of a transaction that begins now: the last frame it sees, or none.
    pub(crate) fn snapshot(&self) -> u64 {
        if self.checkpointed == self.committed {
            NO_SNAPSHOT
        } else {
            self.committed
        }
    }

    /// Appends the next pages, in the recorded order of pages.
    pub(crate) fn append(&mut self, count: u32) {
        self.newest = count;
        let all = self.rules.pages.len().max(1) as u32;
        for _ in 0..count {
            self.frames.push(self.next);
            self.next = (self.next + 1) % all;
        }
    }

    /// Restarts the log at the beginning of its file.
    pub(crate) fn restart(&mut self) {
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
        let frames = self.count() * u64::from(self.rules.frame_bytes);
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
    pub(crate) fn choose_pages(&mut self, checkpoint_end: u64) {
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
