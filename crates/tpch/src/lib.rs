//! Rows of the TPC-H-derived decision-support tables and of their refresh sets, as delimited text.
//!
//! Derived from TPC-H; results are not comparable to published TPC results. The `tpchgen` crate generates the
//! rows of the specification's generator; the keys of the refresh sets follow clause 4.2.3. Rows are made in
//! batches of bounded size, whatever the scale factor.

mod lines;
mod table;

pub use lines::{Lines, release_text, write_file};
pub use table::{Column, Kind, RefreshKeys, SETS_MAX, Table};
pub use table::{Source, TpchError};
