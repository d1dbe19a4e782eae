//! Several databases at once, each on its own machine, with devices that they share.

use crate::api::error::ReplayError;
use crate::api::outcome::Outcome;
use crate::api::scenario::{Mode, Scenario};
use crate::block::shared_device::SharedDevices;
use crate::kernel::run::{outcome, prepare};
use crate::program::prepared::Program;

/// Runs the scenarios of several databases on one virtual time; outcomes in their order.
///
/// # Errors
///
/// The index of the database at fault, and an impossible scenario or a run without progress. All databases must
/// repeat their work for the same time, so that each is measured while all others are at work.
pub fn run_together(
    databases: &[(&Program, Scenario)],
) -> Result<Vec<Outcome>, (usize, ReplayError)> {
    let mut shared = SharedDevices::default();
    let mut simulations = Vec::with_capacity(databases.len());
    for (index, (program, scenario)) in databases.iter().enumerate() {
        let checked = check(scenario, &databases[0].1);
        let simulation = checked.and_then(|()| prepare(program, scenario, &mut shared));
        simulations.push(simulation.map_err(|error| (index, error))?);
    }
    while let Some((_, index)) = simulations
        .iter_mut()
        .enumerate()
        .filter(|(_, simulation)| !simulation.over)
        .map(|(index, simulation)| (simulation.next_event_at(), index))
        .min()
    {
        let advanced = simulations[index].advance();
        advanced.map_err(|error| (index, error))?;
    }
    Ok(simulations.into_iter().map(outcome).collect())
}

fn check(scenario: &Scenario, first: &Scenario) -> Result<(), ReplayError> {
    let repeats = matches!(scenario.mode, Mode::Steady { .. });
    if repeats && scenario.mode == first.mode && scenario.enough.is_none() {
        return Ok(());
    }
    Err(ReplayError::new(
        "work that is done once, or for another time, cannot be measured while others are at work",
        "take recordings of work that repeats, and one time for all",
    ))
}
