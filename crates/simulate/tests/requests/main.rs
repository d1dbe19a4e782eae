//! Requests from files and patterns, put to models.

mod bad_input;
#[path = "../../../device/tests/models/measured.rs"]
mod drives;
mod golden;
mod runs;
mod support;
