//! A recording of one run: threads, files, their states and calls, block requests; a folder of tables.
//!
//! Times are nanoseconds of the kernel's monotonic clock. An index names a row of another table of the same
//! recording; [`NONE`] stands where there is none.

mod about;
mod column_pages;
mod manifest;
mod page_header;
mod parquet_decoding;
mod reader;
mod recording_checks;
mod redact;
mod rows;
mod rules;
mod schema;
mod writer;

pub use about::{
    About, Burst, ChainLink, Check, ClientKind, ClientProgram, Cost, Device, ForeignProgram,
    Losses, Machine, Relation, StorageCpu,
};
pub use rows::{
    Block, BlockOp, Call, CallKind, File, NONE, Role, State, StateKind, Thread, ThreadClass,
    TransactionStatus, UNKNOWN,
};
pub use rules::Rules;
pub use tierwise_input::UserError;
pub use writer::{BurstRows, Writer};

/// Unit of a block request's position and length, whatever the device's own sectors are.
pub const SECTOR_BYTES: u64 = 512;
/// A page of the page cache on x86-64, and on most aarch64 kernels; others have 16 or 64 KiB.
pub const PAGE_BYTES: u64 = 4096;
/// The same in sectors.
pub const PAGE_SECTORS: u64 = PAGE_BYTES / SECTOR_BYTES;

/// Version of the format; a reader refuses newer ones.
pub const FORMAT_VERSION: u32 = 1;

/// One recording, in memory. Every table is sorted by its first time, `states` and `calls` by thread first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// Description of the recording.
    pub about: About,
    /// Threads that were seen.
    pub threads: Vec<Thread>,
    /// Files that were opened, or open already.
    pub files: Vec<File>,
    /// States of each thread, without a gap within a burst.
    pub states: Vec<State>,
    /// System calls that matter to tierwise.
    pub calls: Vec<Call>,
    /// Requests to block devices.
    pub blocks: Vec<Block>,
}

impl Recording {
    /// The same with the role [`Role::Selected`] for the files of these numbers, if they are of the tables' or indexes'
    /// role.
    #[must_use]
    pub fn selecting(mut self, numbers: &[u32]) -> Self {
        for &number in numbers {
            if let Some(file) = self.files.get_mut(number as usize)
                && matches!(file.role, Some(Role::Data | Role::Index))
            {
                file.role = Some(Role::Selected);
            }
        }
        self
    }
}
