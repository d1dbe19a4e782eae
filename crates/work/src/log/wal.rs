//! SQLite's write-ahead log as a recording shows it: the frames of each commit, and the checkpoints that
//! moved pages from the log to their places.
//!
//! Sources: sqlite3.c, `walFrames`, `walCheckpoint`; <https://sqlite.org/fileformat2.html#walformat>: a
//! header of 32 bytes, then frames of 24 bytes and a page. A checkpoint flushes the log, copies the last
//! frame of each page to the page's place, and flushes those pages, unless another commit came meanwhile. The
//! read offset gives the frame, the write offset the page. So the page of each moved frame is known. Frames
//! that the checkpoint skipped held pages with a later frame.

use tierwise_recording::{Call, CallKind, Role, ThreadClass, UNKNOWN};

use crate::engines::WriteAheadLog;
use crate::log::flushes::is_header;
use crate::rows::makes_durable;
use crate::storage::syncs;
use crate::view::View;

/// The log frames of a commit.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoggedCommit {
    pub(crate) thread: u32,
    pub(crate) end_ns: u64,
    /// Start and end of its flush.
    pub(crate) flush_ns: (u64, u64),
    /// Numbers of its frames, counted from 1.
    pub(crate) frames: Vec<u64>,
    /// Processor time of writing them.
    pub(crate) write_ns: u64,
    /// Whether the log restarted with it.
    pub(crate) began: bool,
    /// Whether the file system wrote its journal: the file became longer.
    pub(crate) grew: bool,
}

/// Pages moved from the log to their places by one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageMove<'a> {
    pub(crate) thread: u32,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    /// Frame and first sector, in the data's own space, of each page.
    pub(crate) pages: Vec<(u64, u64)>,
    /// The flush of the pages.
    pub(crate) flush: Option<&'a Call>,
}

/// All commits and checkpoints, by end time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wal<'a> {
    pub(crate) written: Vec<LoggedCommit>,
    pub(crate) moves: Vec<PageMove<'a>>,
    /// Flushes of the log's header: thread, start and end.
    pub(crate) headers: Vec<(u32, u64, u64)>,
    /// Length of the log's header, and of the frame header before each page.
    pub(crate) header_bytes: u64,
    frame_header_bytes: u64,
    pub(crate) page_bytes: u64,
}

impl<'a> Wal<'a> {
    pub(crate) fn new(view: &View<'a>, format: &WriteAheadLog) -> Self {
        let mut wal = Self {
            header_bytes: format.header_bytes,
            frame_header_bytes: format.frame_header_bytes,
            page_bytes: format.page_bytes(&view.recording.about.settings),
            ..Self::default()
        };
        for thread in view.threads(ThreadClass::Session) {
            let mut scan = WalScan {
                view,
                wal: &mut wal,
                writing: LoggedCommit::default(),
                header_ns: None,
                moving: None,
                read: None,
            };
            for call in view.calls(thread).iter().filter(|call| !call.failed) {
                scan.call(call);
            }
            scan.end_move();
        }
        wal.written.sort_by_key(|commit| commit.end_ns);
        wal.moves.sort_by_key(|one| one.end_ns);
        wal
    }

    pub(crate) fn frame_bytes(&self) -> u64 {
        self.frame_header_bytes + self.page_bytes
    }

    /// The frame whose page a call moves.
    fn frame(&self, call: &Call) -> Option<u64> {
        let before = self.header_bytes + self.frame_header_bytes;
        if call.offset_bytes == UNKNOWN || call.size_bytes != self.page_bytes {
            return None;
        }
        let offset = call.offset_bytes.checked_sub(before)?;
        (offset % self.frame_bytes() == 0).then(|| offset / self.frame_bytes() + 1)
    }
}

struct WalScan<'a, 'v> {
    view: &'a View<'v>,
    wal: &'a mut Wal<'v>,
    /// Frames written since its last commit.
    writing: LoggedCommit,
    /// Time of a header write that is not flushed yet.
    header_ns: Option<u64>,
    moving: Option<PageMove<'v>>,
    /// The frame read last, and when.
    read: Option<(u64, u64)>,
}

impl<'v> WalScan<'_, 'v> {
    fn call(&mut self, call: &'v Call) {
        match (call.kind, self.view.role(call.file)) {
            (CallKind::Write, Some(Role::Log)) => self.writes_log(call),
            (CallKind::Sync, Some(Role::Log)) if makes_durable(call) => self.flushes_log(call),
            (CallKind::Read, Some(Role::Log)) => self.reads_log(call),
            (CallKind::Write, Some(Role::Data)) => self.writes_page(call),
            (CallKind::Resize, Some(Role::Data)) => self.goes_on(call),
            (CallKind::Sync, Some(Role::Data)) if self.moving.is_some() => {
                self.goes_on(call);
                if let Some(moving) = &mut self.moving {
                    moving.flush = Some(call);
                }
                self.end_move();
            }
            _ => self.end_move(),
        }
    }

    fn writes_log(&mut self, call: &Call) {
        self.end_move();
        if is_header(self.view, call) {
            self.header_ns = Some(call.start_ns);
            self.writing.began = true;
            return;
        }
        let view = self.view;
        self.writing.write_ns += view.on_core_ns(call.thread, call.start_ns, call.end_ns);
        self.writing.frames.extend(self.wal.frame(call));
    }

    fn flushes_log(&mut self, call: &Call) {
        self.end_move();
        let header_ns = self.header_ns.take();
        if let Some(start_ns) = header_ns.filter(|_| self.writing.frames.is_empty()) {
            self.wal.headers.push((call.thread, start_ns, call.end_ns));
        } else if self.view.flushes.has(call) {
            let script = syncs::script(self.view, Role::Log, call);
            let mut commit = std::mem::take(&mut self.writing);
            (commit.thread, commit.end_ns) = (call.thread, call.end_ns);
            commit.flush_ns = (call.start_ns, call.end_ns);
            commit.grew = !script.journal_writes.is_empty();
            self.wal.written.push(commit);
        } else {
            self.moving = Some(PageMove {
                thread: call.thread,
                start_ns: call.start_ns,
                end_ns: call.end_ns,
                ..PageMove::default()
            });
        }
    }

    fn reads_log(&mut self, call: &Call) {
        self.read = self.wal.frame(call).map(|frame| (frame, call.start_ns));
        if self.read.is_none() {
            self.end_move();
        }
    }

    /// Only a checkpoint writes pages to their places: a write without a recorded start belongs to one that
    /// began before the burst.
    fn writes_page(&mut self, call: &Call) {
        let Some((frame, read_ns)) = self.read.take() else {
            return self.end_move();
        };
        let Some((_, sector, _)) = self.view.address_space.of_call(self.view, call) else {
            return;
        };
        let moving = self.moving.get_or_insert_with(|| PageMove {
            thread: call.thread,
            start_ns: read_ns,
            ..PageMove::default()
        });
        moving.pages.push((frame, sector));
        self.goes_on(call);
    }

    fn goes_on(&mut self, call: &Call) {
        if let Some(moving) = &mut self.moving {
            moving.end_ns = moving.end_ns.max(call.end_ns);
        }
    }

    fn end_move(&mut self) {
        self.read = None;
        self.wal.moves.extend(self.moving.take());
    }
}
