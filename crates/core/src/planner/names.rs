//! The names of the algorithms of a collective: those that make schedules and those that the planner makes
//! plans by. Whatever is listed can be named, and whatever `auto` shows as a candidate.

use super::request::RECORDS;
use crate::algorithm::{self, AlgorithmError};
use crate::collective::CollectiveKind;
use crate::spelling::suggest;

/// All names of a collective, in the order in which they are listed.
pub fn known(kind: CollectiveKind) -> Vec<&'static str> {
    let schedules = algorithm::records().iter();
    let schedules = schedules.filter(|record| record.collective == kind);
    let planners = RECORDS
        .iter()
        .filter(|record| record.collectives.contains(&kind));
    let planners = planners.map(|record| record.name);
    schedules
        .map(|record| record.name)
        .chain(planners)
        .collect()
}

/// Refuses a name that no algorithm of the collective has.
///
/// # Errors
/// [`AlgorithmError::Unknown`], which names the nearest of all algorithms, or all of them.
pub fn check(kind: CollectiveKind, name: &str) -> Result<(), AlgorithmError> {
    if super::find(kind, name).is_some() || algorithm::find(kind, name).is_ok() {
        return Ok(());
    }
    Err(AlgorithmError::Unknown {
        name: name.into(),
        collective: kind,
        hint: suggest(name, known(kind)),
    })
}
