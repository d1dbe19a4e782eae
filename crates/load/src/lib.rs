//! Clients of a database: closed-loop load and the filling of tables, from workloads that are data.
//!
//! [`Workload`] says what to do; [`Client`] is how one engine does it; [`Pool`] owns threads, time and
//! histograms. Each engine has one file, such as [`postgres`]; nothing else depends on an engine.

mod cap;
mod client;
mod clock;
mod context;
mod control;
mod decision_support;
mod derived;
mod draw;
mod driver;
mod error;
mod expression;
mod fill;
mod generated;
mod generator_spec;
mod label;
pub mod mariadb;
mod permutation;
mod plan;
mod pool;
pub mod postgres;
mod random;
mod report;
mod rows;
mod sequence;
mod session;
mod skew;
pub mod sql;
mod tally;
mod transaction;
mod value;
mod worker;
mod workload;

pub use client::{Arguments, Client, Connector, Failure, Outcome};
pub use context::Context;
pub use control::{Control, Limit, Task};
pub use draw::Generator;
pub use driver::{Clients, Driver};
pub use error::LoadError;
pub use expression::Term;
pub use fill::fill;
pub use generator_spec::GeneratorSpec;
pub use plan::Plan;
pub use pool::Pool;
pub use random::{Random, random};
pub use report::Report;
pub use rows::Rows;
pub use value::Value;
pub use workload::{
    Column, Parameter, Repeat, Step, Sum, Table, TableSource, Transaction, Workload,
};
