//! Replaying work that is made for it, on devices whose times are known.

mod arrivals;
mod background;
mod commit_delay;
mod commit_settings;
mod cores;
mod joint;
mod log;
mod log_replica;
mod memory;
mod mutants;
mod one_writer;
mod properties;
mod refusals;
mod support;
mod tracing;
mod write_back;
