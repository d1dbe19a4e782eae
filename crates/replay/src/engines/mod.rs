//! What one kind of engine alone does, driven by rules in the work. No other room looks in here for an engine's name.

pub(crate) mod wal;
pub(crate) mod wal_checkpoints;
