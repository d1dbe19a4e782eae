//! Work from recordings made by hand.

mod made;
mod steps;
mod turns;
