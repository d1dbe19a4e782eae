//! Rows of the TPC-H-derived decision-support tables and of their refresh sets, as delimited text.
//!
//! Derived from TPC-H; results are not comparable to published TPC results. The `tpchgen` crate generates the
//! rows of the specification's generator; the keys of the refresh sets follow clause 4.2.3. Rows are made in
//! batches of bounded size, whatever the scale factor.

mod error;
mod keys;
mod lines;
mod pool;
mod source;
mod table;
mod write;

pub use error::TpchError;
pub use keys::{RefreshKeys, SETS_MAX};
pub use lines::Lines;
pub use pool::release_text;
pub use source::Source;
pub use table::{Column, Kind, Table};
pub use write::write_file;
