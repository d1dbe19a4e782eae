//! The path to a disk that tierwise emulates: its server's threads and their processor time. Real devices have none.

pub(crate) mod request_path;
