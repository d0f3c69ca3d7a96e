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
        /// The collective.
        collective: CollectiveKind,
        /// The nearest known name, or all known names.
        hint: String,
    },
    /// The algorithm is for other collectives.
    #[error(
        "`{}` is not an algorithm of {collective}, but of {others}",
        terminal_text(name)
    )]
    OtherCollective {
        /// The given name.
        name: String,
        /// The collective.
        collective: CollectiveKind,
        /// The collectives of the algorithm.
        others: String,
    },
    /// An option is unknown or invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The fabric is no WDM ring.
    #[error(transparent)]
    WrongFamily(#[from] WrongFamily),
    /// The fabric has no groups.
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
    /// The algorithm does not run on this fabric or number of ranks.
    #[error("`{name}` does not run here, on {ranks} ranks: {reason}")]
    Refused {
        /// Name of the algorithm.
        name: &'static str,
        /// Number of ranks.
        ranks: u32,
        /// The reason, and an alternative.
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
    /// The transfers do not fit into memory.
    #[error(
        "{transfers} transfers among {ranks} ranks are too many to list one by one (at most \
            {most}); plan for fewer ranks"
    )]
    TooLarge {
        /// Number of ranks.
        ranks: u32,
        /// Number of transfers of the schedule.
        transfers: u64,
        /// Maximum number of transfers.
        most: u64,
    },
    /// The collective that the algorithm needs is invalid.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
}
