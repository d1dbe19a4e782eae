//! Engines by name at run time: the same calls for every engine's own types.

use crate::client::{Client, Connector};
use crate::control::{Control, Task};
use crate::error::LoadError;
use crate::fill::fill;
use crate::plan::Plan;
use crate::pool::Pool;
use crate::report::Report;
use crate::workload::Workload;

/// A database of some engine. Every [`Connector`] is one.
pub trait Driver: Send + Sync {
    /// Fill the tables of a workload: [`fill`].
    ///
    /// # Errors
    /// Those of [`fill`].
    fn load(&self, workload: &Workload, seed: u64, control: &Control) -> Result<u64, LoadError>;

    /// Connect clients: [`Pool::connect`].
    ///
    /// # Errors
    /// Those of [`Pool::connect`].
    fn connect(
        self: Box<Self>,
        plan: Plan,
        clients: usize,
        seed: u64,
        control: &Control,
    ) -> Result<Box<dyn Clients>, LoadError>;
}

/// Connected clients of some engine. Every [`Pool`] is this.
pub trait Clients: Send {
    /// Run all clients: [`Pool::run`].
    ///
    /// # Errors
    /// Those of [`Pool::run`].
    fn run(&mut self, task: Task<'_>, control: &Control) -> Result<Report, LoadError>;

    /// Give every client a new connection: [`Pool::reconnect`].
    ///
    /// # Errors
    /// Those of [`Pool::connect`].
    fn reconnect(&mut self, control: &Control) -> Result<(), LoadError>;

    /// Drop the connections.
    fn close(&mut self);
}

impl<K> Driver for K
where
    K: Connector + 'static,
{
    fn load(&self, workload: &Workload, seed: u64, control: &Control) -> Result<u64, LoadError> {
        fill(self, workload, seed, control)
    }

    fn connect(
        self: Box<Self>,
        plan: Plan,
        clients: usize,
        seed: u64,
        control: &Control,
    ) -> Result<Box<dyn Clients>, LoadError> {
        Ok(Box::new(Pool::connect(
            *self, plan, clients, seed, control,
        )?))
    }
}

impl<K> Clients for Pool<K>
where
    K: Connector,
    K::Client: Client,
{
    fn run(&mut self, task: Task<'_>, control: &Control) -> Result<Report, LoadError> {
        Pool::run(self, task, control)
    }

    fn reconnect(&mut self, control: &Control) -> Result<(), LoadError> {
        Pool::reconnect(self, control)
    }

    fn close(&mut self) {
        Pool::close(self);
    }
}
