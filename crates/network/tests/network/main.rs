//! Replaying work that is made for it, on devices whose times are known.

mod arrivals;
mod background;
mod commit_settings;
mod cores;
mod joint;
mod log;
mod memory;
mod mutants;
mod properties;
mod refusals;
mod support;
mod tracing;
