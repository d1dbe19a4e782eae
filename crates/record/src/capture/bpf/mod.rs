//! The little of BPF that is needed here: a few instructions assembled in the program, maps, and a ring of records.

mod assembler;
mod kernel;
mod ring;

pub use assembler::{Assembler, Helper, Jump, Register};
pub use kernel::{Attachment, Map, Program};
pub use ring::Ring;
