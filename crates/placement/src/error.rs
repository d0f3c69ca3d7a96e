//! Why a schedule has no place on a fabric.

use thiserror::Error;

use opticoll_base::interrupt;
use opticoll_plan::schedule::Schedule;

/// What is wrong with a schedule, a fabric or what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlacementProblem {
    /// The fabric is of another family.
    Family,
    /// A transfer that has no path on the fabric, nor on any of its size.
    Path,
    /// What the fabric cannot carry as it is: cut off, too far, or too few channels.
    Unfit,
    /// An assignment that is unknown or not for this fabric.
    Assignment,
}

/// Why a schedule has no place on a fabric.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{sentence}")]
pub struct PlacementError {
    /// What is wrong.
    pub problem: PlacementProblem,
    /// The same in words, with what would do.
    pub sentence: String,
}

impl PlacementError {
    /// A problem in words.
    pub fn new(problem: PlacementProblem, sentence: impl std::fmt::Display) -> PlacementError {
        PlacementError {
            problem,
            sentence: sentence.to_string(),
        }
    }
}

/// Refuses transfers that do not go from one of so many ranks to another.
///
/// # Errors
/// The first such transfer.
pub(crate) fn check_ends(schedule: &Schedule, ranks: u32) -> Result<(), PlacementError> {
    for transfer in 0..schedule.len() {
        interrupt::check();
        let (source, destination) = schedule.ends(transfer);
        if source == destination || source.max(destination) >= ranks {
            let sentence = format!(
                "transfer {transfer} goes from rank {source} to rank {destination}, but light goes \
                 from one of {ranks} ranks, counted from 0, to another"
            );
            return Err(PlacementError::new(PlacementProblem::Path, sentence));
        }
    }
    Ok(())
}
