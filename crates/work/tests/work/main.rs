//! Work from recordings made by hand.

mod any;
mod breakdown;
mod files;
mod flush_sharing;
mod made;
mod memory;
mod one_writer;
mod steps;
mod transactions;
mod turns;
