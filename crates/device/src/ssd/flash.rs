//! The flash as the translation layer sees it.

/// Sizes of the flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flash {
    /// Addressable size, in bytes.
    pub(crate) capacity_bytes: u64,
    /// Dies on all channels.
    pub(crate) dies: u32,
    /// Sectors that a die programs at once: a page of every plane.
    pub(crate) die_stripe_sectors: u64,
}
