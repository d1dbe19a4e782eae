//! Replaying work that is made for it, on devices whose times are known.

mod background;
mod log;
mod memory;
mod properties;
mod refusals;
mod serving;
mod support;
