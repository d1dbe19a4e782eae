//! Several databases at once, each on its own machine, with devices that they share.

use crate::api::outcome::Outcome;
use crate::api::scenario::{Mode, Scenario};
use crate::block::devices::SharedDevices;
use crate::kernel::run::{outcome, prepare};
use crate::program::Program;
use tierwise_recording::UserError;

/// Runs the scenarios of several databases on one virtual time; outcomes in their order.
///
/// # Errors
///
/// The index of the database at fault, and an impossible scenario or a run without progress. All databases must
/// repeat their work for the same time, so that each is measured while all others are at work.
pub fn run_together(
    databases: &[(&Program, Scenario)],
) -> Result<Vec<Outcome>, (usize, UserError)> {
    let mut shared = SharedDevices::default();
    let mut runs = Vec::with_capacity(databases.len());
    for (index, (program, scenario)) in databases.iter().enumerate() {
        let checked = check(scenario, &databases[0].1);
        let run = checked.and_then(|()| prepare(program, scenario, &mut shared));
        runs.push((run.map_err(|error| (index, error))?, false));
    }
    while let Some((_, index)) = runs
        .iter()
        .enumerate()
        .filter(|(_, (_, over))| !over)
        .map(|(index, (run, _))| (run.next_event_at(), index))
        .min()
    {
        let (run, over) = &mut runs[index];
        *over = run.advance().map_err(|error| (index, error))?;
    }
    Ok(runs.iter().map(|(run, _)| outcome(run)).collect())
}

fn check(scenario: &Scenario, first: &Scenario) -> Result<(), UserError> {
    let repeats = matches!(scenario.mode, Mode::Steady { .. });
    if repeats && scenario.mode == first.mode && scenario.enough.is_none() {
        return Ok(());
    }
    Err(UserError::new(
        "work that is done once, or for another time, cannot be measured while others are at work",
        "take recordings of work that repeats, and one time for all",
    ))
}
