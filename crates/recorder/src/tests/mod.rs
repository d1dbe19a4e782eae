//! What the tests of more than one module need.

pub mod kernel_table;
