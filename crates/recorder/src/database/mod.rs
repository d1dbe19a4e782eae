//! The recorded database: which server it is, the rules of its engine, its settings, its clients.

pub mod clients;
pub mod rules;
pub mod servers;
pub mod settings;
pub mod target;

pub use clients::{clients_of, kind_of_name, merge, servers_of_now};
pub use rules::role_by_path;
pub use servers::Server;
pub use settings::{roles_of, settings_of};
pub use target::{Wanted, listed, root_of};
