//! Why no schedule was made.

use thiserror::Error;

use opticoll_base::names::shown;
use opticoll_base::spec::SpecError;
use opticoll_fabric::fabric::WrongFamily;
use opticoll_plan::collective::{CollectiveError, CollectiveKind};

/// Why no schedule was made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AlgorithmError {
    /// No algorithm of the collective has this name.
    #[error("unknown algorithm `{}` for {collective}{hint}", shown(name))]
    Unknown {
        /// The name as given.
        name: String,
        /// The collective.
        collective: CollectiveKind,
        /// The nearest known name, or all of them.
        hint: String,
    },
    /// The algorithm is for other collectives.
    #[error(
        "`{}` does not carry out {collective}: it carries out {others}",
        shown(name)
    )]
    OtherCollective {
        /// The name as given.
        name: String,
        /// The collective.
        collective: CollectiveKind,
        /// Those that it carries out.
        others: String,
    },
    /// An option is unknown or does not fit.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The fabric is no ring of light.
    #[error(transparent)]
    WrongFamily(#[from] WrongFamily),
    /// The fabric has no groups.
    #[error(
        "`{name}` goes by the groups and routers of a dragonfly, which {family} does not have; \
         `ring` and `binomial` run on any fabric"
    )]
    NoGroups {
        /// The algorithm.
        name: &'static str,
        /// The family of the fabric.
        family: &'static str,
    },
    /// The algorithm does not run here.
    #[error("`{name}` does not run here, on {ranks} ranks: {reason}")]
    Refused {
        /// The algorithm.
        name: &'static str,
        /// The number of ranks.
        ranks: u32,
        /// Why not, and what would do.
        reason: String,
    },
    /// The fabric and the collective differ in their number of ranks.
    #[error("the collective has {collective} ranks, the fabric {fabric}")]
    Ranks {
        /// Ranks of the collective.
        collective: u32,
        /// Ranks of the fabric.
        fabric: u32,
    },
    /// More transfers than fit into memory.
    #[error(
        "{transfers} transfers among {ranks} ranks are too many to list one by one (at most {most}); \
         plan for fewer ranks"
    )]
    TooLarge {
        /// The number of ranks.
        ranks: u32,
        /// The transfers that the schedule would have.
        transfers: u64,
        /// The most that a schedule may have.
        most: u64,
    },
    /// The collective that the algorithm needs cannot be made.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
}
