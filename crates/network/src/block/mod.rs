//! Block devices: where roles lie, requests under way, the models that serve them.

pub(crate) mod devices;
pub(crate) mod empirical_device;
pub(crate) mod role_layout;
pub(crate) mod storage;
