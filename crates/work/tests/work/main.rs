//! Work from recordings made by hand.

mod breakdown;
mod files;
mod flush_sharing;
mod made;
mod transactions;
mod turns;
