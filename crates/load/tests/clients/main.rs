//! Clients and loading, with drivers that note what they are asked.

mod decision_support;
mod generators;
mod laps;
mod noting;
mod pool;
mod sql;
