//! Behaviour that only one kind of engine has, driven by rules in the work. No code compares an engine's name.

pub(crate) mod wal;
pub(crate) mod wal_checkpoints;
