//! The recorded database: which server it is, the rules of its engine, its settings, its clients.

pub mod clients;
pub mod rules;
pub mod servers;
pub mod settings;
