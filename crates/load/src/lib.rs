//! Clients of a database: closed-loop load and the filling of tables, from workloads that are data.
//!
//! [`Workload`] says what to do; [`Client`] is how one engine does it; [`Pool`] owns threads, time and
//! histograms. Each engine has one file, such as [`postgres`]; nothing else depends on an engine.

mod client;
mod control;
mod draw;
mod driver;
mod error;
mod expression;
pub mod mariadb;
mod plan;
pub mod postgres;
mod rows;
mod session;
pub mod sql;
mod value;
mod worker;
mod workload;

pub use client::{Arguments, Client, Connector, Failure, Outcome};
pub use control::{Control, Limit, Task};
pub use draw::{Context, Generator, Random, random};
pub use driver::Pool;
pub use driver::fill;
pub use driver::{Clients, Driver};
pub use error::LoadError;
pub use expression::Term;
pub use plan::Plan;
pub use rows::Rows;
pub use value::Value;
pub use worker::Report;
pub use workload::{
    Column, GeneratorSpec, Parameter, Repeat, Step, Sum, Table, TableSource, Transaction, Workload,
};
