//! How changes become durable: the log, commits, syncs, the file system's journal, the log's replica. No queues or
//! devices.

pub(crate) mod commit;
pub(crate) mod commit_delay;
pub(crate) mod log;
pub(crate) mod log_replica;
pub(crate) mod second_log;
pub(crate) mod sync;
pub(crate) mod sync_stage;
