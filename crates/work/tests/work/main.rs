//! Work from recordings made by hand.

mod any;
mod checkpoints;
mod files;
mod made;
mod member;
mod memory;
mod one_writer;
mod steps;
mod storage;
mod transactions;
mod turns;
