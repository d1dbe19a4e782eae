//! Work from recordings made by hand.

mod any;
mod made;
mod steps;
mod turns;
