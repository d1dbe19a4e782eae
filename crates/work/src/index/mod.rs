//! A recording's rows made searchable: by thread, by time, by place in a file.
//!
//! Facts and lookups only. What a row means for the work is said elsewhere.

pub(crate) mod address_space;
pub(crate) mod calls;
pub(crate) mod extents;
pub(crate) mod rows;
pub(crate) mod sizes;
pub(crate) mod view;
pub(crate) mod work_clock;
