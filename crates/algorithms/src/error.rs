//! Errors of algorithms.

use thiserror::Error;

use opticoll_base::names::terminal_text;
use opticoll_base::spec::SpecError;
use opticoll_fabric::fabric::WrongFamily;
use opticoll_plan::collective::{CollectiveError, CollectiveKind};

/// Reason why no schedule was built.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AlgorithmError {
    /// The collective has no algorithm of this name.
    #[error("unknown algorithm `{}` for {collective}{hint}", terminal_text(name))]
    Unknown {
        /// The given name.
        name: String,
        /// The collective that was requested.
        collective: CollectiveKind,
        /// The most similar algorithm name, or all names, as a suggestion to print.
        hint: String,
    },
    /// The collective has no algorithm of this name, but other collectives have.
    #[error(
        "`{}` is not an algorithm of {collective}, but of {others}",
        terminal_text(name)
    )]
    OtherCollective {
        /// The given name.
        name: String,
        /// The collective that was requested.
        collective: CollectiveKind,
        /// Names of the collectives that have an algorithm of this name.
        others: String,
    },
    /// An option is unknown or invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The algorithm runs on a WDM ring only.
    #[error(transparent)]
    WrongFamily(#[from] WrongFamily),
    /// The algorithm runs on a fabric with groups of ranks only, but the fabric has none.
    #[error(
        "`{name}` uses the groups and routers of a dragonfly, which {family} does not have; `ring` \
         and `binomial` run on any fabric"
    )]
    NoGroups {
        /// Name of the algorithm.
        name: &'static str,
        /// Family of the fabric.
        family: &'static str,
    },
    /// The algorithm does not support this fabric or this number of ranks.
    #[error("`{name}` does not run here, on {ranks} ranks: {reason}")]
    Refused {
        /// Name of the algorithm.
        name: &'static str,
        /// Number of ranks.
        ranks: u32,
        /// Reason, with a supported alternative.
        reason: String,
    },
    /// The collective and the fabric have different numbers of ranks.
    #[error("the collective has {collective} ranks, but the fabric has {fabric} ranks")]
    Ranks {
        /// Number of ranks of the collective.
        collective: u32,
        /// Number of ranks of the fabric.
        fabric: u32,
    },
    /// The schedule has more transfers than memory can store.
    #[error(
        "{transfers} transfers among {ranks} ranks are too many to list one by one (at most \
            {max_transfers}); plan for fewer ranks"
    )]
    TooLarge {
        /// Number of ranks.
        ranks: u32,
        /// Number of transfers of the schedule.
        transfers: u64,
        /// Maximum number of transfers of a schedule.
        max_transfers: u64,
    },
    /// The collective for which the schedule is built is invalid.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
}

impl AlgorithmError {
    /// Creates the error that the algorithm or planner `name` does not run here, for `reason`.
    pub fn refused(name: &'static str, ranks: u32, reason: impl Into<String>) -> AlgorithmError {
        AlgorithmError::Refused {
            name,
            ranks,
            reason: reason.into(),
        }
    }
}
