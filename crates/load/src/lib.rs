//! Clients of a database: closed-loop load and the filling of tables, from workloads that are data.
//!
//! [`Workload`] is what is done; [`Client`] is how one engine does it; [`Pool`] owns threads, time and
//! histograms. Of the engines only [`postgres`] knows anything about PostgreSQL.

mod client;
mod clock;
mod draw;
mod error;
mod fill;
mod plan;
mod pool;
pub mod postgres;
mod report;
mod session;
pub mod sql;
mod value;
mod worker;
mod workload;

pub use client::{Arguments, Client, Connector, Failure};
pub use draw::{Context, Generator, Random, random};
pub use error::LoadError;
pub use fill::{Rows, fill};
pub use plan::Plan;
pub use pool::{Limit, Pool, Stop};
pub use report::Report;
pub use value::Value;
pub use workload::{Column, GeneratorSpec, Parameter, Repeat, Step, Table, Transaction, Workload};
