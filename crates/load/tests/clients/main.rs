//! Clients and loading, with drivers that note what they are asked.

mod generators;
mod laps;
mod noting;
mod pool;
