//! Work from recordings made by hand.

mod any;
mod made;
mod memory;
mod steps;
mod turns;
