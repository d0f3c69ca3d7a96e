//! Why a schedule has no place on a fabric.

use thiserror::Error;

/// What is wrong with a schedule, a fabric or what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlacementProblem {
    /// The fabric is of another family.
    Family,
    /// A transfer that has no path on the fabric, nor on any of its size.
    Path,
    /// What the fabric cannot carry as it is: cut off, too far, or too few channels.
    Unfit,
    /// An assignment, or an option of it, that is unknown or not for this fabric.
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
