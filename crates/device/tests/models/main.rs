//! The models against closed forms, data sheets and measured drives; what follows from their contract.

mod array_physics;
mod conformance;
mod golden;
mod hdd;
mod measured;
mod profiles;
mod sheets;
mod ssd_amplification;
mod ssd_timing;
mod support;
mod volume;
