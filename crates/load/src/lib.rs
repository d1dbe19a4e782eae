//! Clients of a database: closed-loop load and the filling of tables, from workloads that are data.
//!
//! [`ResolvedWorkload`] says what to do; [`EngineClient`] is how one engine does it; [`ClientPool`] owns threads, time and
//! histograms. Each engine has one file, such as [`postgres`]; nothing else depends on an engine.

mod client_session;
mod client_worker;
mod drawn_value;
mod engine_client;
mod engine_driver;
mod error;
mod expression;
pub mod mariadb;
pub mod postgres;
mod run_control;
pub mod sql;
mod table_rows;
mod value_generators;
mod workload;
mod workload_plan;

pub use client_worker::LoadReport;
pub use drawn_value::DrawnValue;
pub use engine_client::{
    EngineClient, EngineConnector, StatementArguments, StatementFailure, StatementOutcome,
};
pub use engine_driver::ClientPool;
pub use engine_driver::fill_tables;
pub use engine_driver::{ConnectedClients, EngineDriver};
pub use error::LoadError;
pub use expression::ExpressionTerm;
pub use run_control::{ClientTask, RunControl, RunLimit};
pub use table_rows::TableRows;
pub use value_generators::{DrawingClient, RandomSource, ValueGenerator, random_stream};
pub use workload::{
    ChecksumPart, GeneratorSpec, RepeatCount, ResolvedWorkload, StatementParameter, TableSource,
    TransactionStep, WorkloadColumn, WorkloadTable, WorkloadTransaction,
};
pub use workload_plan::WorkloadPlan;
