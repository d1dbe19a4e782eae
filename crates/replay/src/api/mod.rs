//! What may be asked of a replay and what it answers. Nothing here knows how an answer comes about.

pub(crate) mod error;
pub(crate) mod outcome;
pub(crate) mod parallel;
pub(crate) mod question;
pub(crate) mod reproduction;
pub(crate) mod scenario;
pub(crate) mod summary;
