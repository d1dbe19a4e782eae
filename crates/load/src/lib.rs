//! Clients of a database: closed-loop load from workloads that are data.
