//! Error for a schedule that cannot be placed on a fabric.

use thiserror::Error;

use opticoll_base::interrupt;
use opticoll_plan::schedule::Schedule;

/// Kind of a placement error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlacementProblem {
    /// The fabric belongs to a family other than the expected family.
    Family,
    /// A transfer has no path on any fabric with this number of ranks.
    Path,
    /// The fabric cannot carry the schedule: a rank is disconnected, a lightpath is too long, or
    /// there are too few channels.
    Unfit,
    /// The rule that assigns channels is unknown or does not apply to this fabric.
    Assignment,
}

/// Error for a schedule that cannot be placed on a fabric.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{sentence}")]
pub struct PlacementError {
    /// Kind of the error.
    pub problem: PlacementProblem,
    /// Message, which says how to avoid the error.
    pub sentence: String,
}

impl PlacementError {
    /// Creates an error with a message.
    pub fn new(problem: PlacementProblem, sentence: impl std::fmt::Display) -> PlacementError {
        PlacementError {
            problem,
            sentence: sentence.to_string(),
        }
    }
}

/// Checks that every transfer goes between two different ranks, which are both below `ranks`.
///
/// # Errors
/// A transfer has equal ranks, or a rank that does not exist.
pub(crate) fn check_ends(schedule: &Schedule, ranks: u32) -> Result<(), PlacementError> {
    for transfer in 0..schedule.len() {
        interrupt::check();
        let (source, destination) = schedule.ends(transfer);
        if source == destination || source.max(destination) >= ranks {
            let sentence = format!(
                "transfer {transfer} goes from rank {source} to rank {destination}, but light \
                 leads from one of the {ranks} ranks, counted from 0, to another rank"
            );
            return Err(PlacementError::new(PlacementProblem::Path, sentence));
        }
    }
    Ok(())
}
