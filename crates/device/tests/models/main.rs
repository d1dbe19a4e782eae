//! The models against closed forms, data sheets and measured drives; what follows from their contract.

mod array_physics;
mod array_support;
mod conformance;
mod contract;
mod disk;
mod flash;
mod golden;
mod measured;
mod physics;
mod physics_queue;
mod profiles;
mod readahead;
mod sheets;
mod shipped;
mod ssd;
mod ssd_amplification;
mod ssd_timing;
mod volume;
mod volume_profiles;
