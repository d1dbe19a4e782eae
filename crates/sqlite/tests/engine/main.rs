//! The files of a database, its recovery, and its clients.

mod clients;
mod crash;
mod placement;
mod support;
