//! Replaying work that is made for it, on devices whose times are known.

mod arrivals;
mod background;
mod changes;
mod clients;
mod commit_delay;
mod core_selection;
mod joint;
mod journal;
mod kernel_io_threads;
mod length;
mod log;
mod log_replica;
mod memory;
mod mutants;
mod one_writer;
mod preemption;
mod properties;
mod refusals;
mod support;
mod tracing;
mod worn;
mod write_ahead;
mod write_back;
