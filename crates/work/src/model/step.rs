//! What a session does, one thing after the other.

use tierwise_recording::Role;

use crate::Reuse;

/// One thing a session does. Times are of the recorded processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Runs on a core.
    Cpu {
        /// Time on the core.
        time_ns: u32,
        /// Whether the client's thread, not the server's, ran.
        client: bool,
        /// What recording it took on top.
        traced_ns: u32,
        /// Of a client: how long it had been awake when its session's thread left its core. Who is sent an answer
        /// wakes while the sender still runs.
        head_start_ns: u32,
    },
    /// The client's thread runs on after its request, while the session works: it returns from the call that sent the
    /// request, and checks for replies.
    ClientRunOn {
        /// Time on the core.
        time_ns: u32,
    },
    /// Waits outside of the recorded threads: for think time, the network, or a timer.
    Delay(Delay),
    /// Reuse distance of the cached reads, reads and read-ahead that follow in the turn. Unknown where a turn begins.
    Reuse(Reuse),
    /// Reads pages of a file that the page cache held.
    CachedRead {
        /// What the file is for.
        role: Role,
        /// Sector of the role's own space.
        sector: u64,
        /// Length.
        sectors: u32,
    },
    /// Reads from the device, and waits.
    Read {
        /// What the file is for.
        role: Role,
        /// Sector of the role's own space.
        sector: u64,
        /// Length.
        sectors: u32,
    },
    /// Writes past the page cache, and waits.
    WriteThrough {
        /// What the file is for.
        role: Role,
        /// Sector of the role's own space.
        sector: u64,
        /// Length.
        sectors: u32,
    },
    /// Writes into the page cache; becomes work for the device later, or at a sync.
    Write {
        /// What the file is for.
        role: Role,
        /// Sector of the role's own space.
        sector: u64,
        /// Length.
        sectors: u32,
    },
    /// Waits until all that was written to files of this role is durable; not a commit.
    Sync {
        /// What the files are for.
        role: Role,
        /// What the sync made the device do: index in [`Work::scripts`](crate::Work::scripts).
        script: u32,
    },
    /// Gives dirty pages to the device and goes on, unless too many are under way: `sync_file_range`.
    WriteBack {
        /// What the file is for.
        role: Role,
        /// Sector of the role's own space.
        sector: u64,
        /// Length.
        sectors: u32,
    },
    /// Hands a request to the device and goes on: read-ahead, io_uring, aio. Later reads of sectors that are under way
    /// wait for them.
    Submit {
        /// What the file is for.
        role: Role,
        /// Sector of the role's own space.
        sector: u64,
        /// Length.
        sectors: u32,
        /// Whether it writes.
        write: bool,
    },
    /// The next read or request of this session is of a stream of which so much is read later.
    Stream {
        /// Sectors.
        sectors: u32,
    },
    /// Waits until all that this session submitted is done.
    Drain,
    /// Pages of a file that was deleted or cut: what was not yet written of them never will be.
    Forget {
        /// What the file was for.
        role: Role,
        /// Sector of the role's own space.
        sector: u64,
        /// Length.
        sectors: u32,
    },
    /// Appends to the log's buffer.
    Append {
        /// How much.
        size_bytes: u32,
    },
    /// Pages that the next commit puts into the log: the next of [`crate::CheckpointRules::pages`], over and over.
    Frames {
        /// How many.
        count: u32,
    },
    /// The log's file is made anew, and empty.
    NewLogFile,
    /// Moves pages from the log to their places, if it holds enough of them and nobody else does.
    Checkpoint,
    /// Waits until the log is durable up to what this session has appended; at once if that is nothing.
    Commit,
    /// Waits until the log is durable further than when this session last passed here: a second copy is made of
    /// what was added.
    AwaitLog,
    /// The second copy is durable as far as the log was at the last [`Step::AwaitLog`]: commits go on that wait for
    /// both.
    Acknowledge,
    /// Takes one key of a hot lock, kept until the session's next commit (its end or its begin, see
    /// [`crate::HotLock::over_commit`]) or the end of a turn that ends a transaction.
    Lock {
        /// Index in [`Work::locks`](crate::Work::locks).
        lock: u16,
    },
    /// Lets sessions that await this number go on.
    Signal {
        /// Unique in the work.
        number: u32,
    },
    /// Waits for another session's signal, a dependency that the recording showed and no rule explains.
    Await {
        /// The signal's number.
        number: u32,
    },
}

/// Time that passes whatever the devices do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delay {
    /// How long.
    pub time_ns: u64,
    /// Whether it is the engine's own timer (busy handler, delay) rather than the client.
    pub timer: bool,
}
