//! The client that draws values.

/// The client that draws.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Seed of the load.
    pub seed: u64,
    /// Which client, from 0.
    pub client: u64,
    /// Number of clients.
    pub clients: u64,
}
