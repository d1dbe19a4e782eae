//! Lookups in a recording's rows: by thread, by time, by position in a file.
//!
//! Facts and lookups only. Other modules interpret the rows.

pub(crate) mod address_space;
pub(crate) mod calls;
pub(crate) mod extents;
pub(crate) mod rows;
pub(crate) mod sizes;
pub(crate) mod view;
pub(crate) mod work_clock;
