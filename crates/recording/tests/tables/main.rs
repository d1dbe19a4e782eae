//! Tables of a recording: what is written is read, and what is damaged is refused.

mod files;
mod fuzz;
mod support;
