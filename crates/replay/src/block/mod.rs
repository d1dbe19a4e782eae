//! From a role and a sector to a device and back: placement, queues, device models. It knows no session and no file.

pub(crate) mod device_queue;
pub(crate) mod empirical_device;
pub(crate) mod jobs;
pub(crate) mod layout;
pub(crate) mod scenario_devices;
pub(crate) mod shared_device;
pub(crate) mod storage;
pub(crate) mod traffic;
