//! Work from recordings made by hand.

mod any;
mod breakdown;
mod commit_delay;
mod files;
mod flush_sharing;
mod log_replica;
mod made;
mod memory;
mod one_writer;
mod steps;
mod transactions;
mod turns;
