//! Drives a device model with requests on virtual time and sums up the results.
//!
//! [`SimulationJob`] is a simulation as data; [`SimulationJob::run`] runs it. Requests come from a file ([`RequestFile`]) or from an
//! access pattern; [`simulate_requests`] owns time and submits them to the device; a [`SimulationReport`] has the figures. Memory
//! does not grow with the number of requests, except where measured times are compared.

mod device_figures;
mod request_file;
mod simulation_job;
mod simulation_loop;
mod simulation_report;

pub use device_figures::{DeviceFigures, measure_device_figures, summarize_profiles};
pub use request_file::{RequestColumn, RequestFile};
pub use simulation_job::{SimulationJob, parse_precondition};
pub use simulation_loop::{ArrivalLimits, ArrivalPace, simulate_requests};
pub use simulation_loop::{LimitedSource, RequestSource, TimedRequest};
pub use simulation_report::{MeasurementComparison, ServiceTimesFile, demerit_figure};
pub use simulation_report::{OpReport, SimulationReport};
pub use tierwise_input::UserError;
