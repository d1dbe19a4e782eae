//! Replaying work that is made for it, on devices whose times are known.

mod background;
mod changes;
mod clients;
mod journal;
mod length;
mod log;
mod member;
mod memory;
mod mutants;
mod one_writer;
mod picks;
mod placing;
mod properties;
mod refusals;
mod serving;
mod support;
mod tracing;
mod worn;
mod write_ahead;
mod write_back;
