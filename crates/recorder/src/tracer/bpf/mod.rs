//! The minimal BPF support needed here: an assembler for a few instructions, maps, and a ring of records.

mod assembler;
mod kernel;
mod ring;

pub use assembler::{Assembler, Helper, Jump, Register};
pub use kernel::{Attachment, Map, Program};
pub use ring::Ring;
