//! Errors of planning.

use thiserror::Error;

use opticoll_algorithms::AlgorithmError;
use opticoll_base::memory::MemoryLimitExceeded;
use opticoll_base::spec::SpecError;
use opticoll_base::units::UnitError;
use opticoll_fabric::fabric::WrongFamily;
use opticoll_placement::PlacementError;
use opticoll_plan::collective::{CollectiveError, CollectiveKind};
use opticoll_simulate::SimulationError;

/// Reason why planning failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlannerError {
    /// The planner does not support this collective.
    #[error("relay trees plan an all_gather, not {kind}; {hint}")]
    Collective {
        /// Requested collective.
        kind: CollectiveKind,
        /// Supported collective, or another remedy.
        hint: &'static str,
    },
    /// The collective and the fabric have different numbers of ranks.
    #[error("the collective has {collective} ranks, but the fabric has {fabric} ranks")]
    Ranks {
        /// Number of ranks of the collective.
        collective: u32,
        /// Number of ranks of the fabric.
        fabric: u32,
    },
    /// The plan has more transfers than the limit.
    #[error(
        "a plan of {transfers} transfers is too large: the maximum is {most}; use fewer ranks or \
         pieces"
    )]
    TooLarge {
        /// Number of transfers of the plan.
        transfers: u64,
        /// Maximum number of transfers.
        most: u64,
    },
    /// Light cannot pass from every rank to every other rank.
    #[error(
        "the ring is disconnected: cuts, or links to the next rank that are longer than light \
         reaches, leave ranks that cannot reach others; a ring can lose links of one direction in \
         any places, such as 3-4cw+9-10cw, or both directions between one pair of neighbours, such \
         as 3-4"
    )]
    CutOff,
    /// The search found no relay trees.
    #[error("no relay trees were found for blocks of {pieces} pieces; use whole blocks (1 piece)")]
    NotFound {
        /// Number of pieces per block.
        pieces: u32,
    },
    /// Every plan exceeds the maximum number of transfers.
    #[error("every plan has more than {most} transfers")]
    NothingFits {
        /// Maximum number of transfers.
        most: u64,
    },
    /// The plan does not meet the condition of the request, for this reason.
    #[error("{0}")]
    Unmet(String),
    /// The root of the collective has left the fabric.
    #[error("the root, node {node}, has left; plan a collective with another root")]
    RootLeft {
        /// Node of the root.
        node: u32,
    },
    /// The simulation of a plan failed.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// A time exceeds 64 bits.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// The fabric is not a WDM ring.
    #[error(transparent)]
    WrongFamily(#[from] WrongFamily),
    /// The collective is not valid.
    #[error(transparent)]
    CollectiveSize(#[from] CollectiveError),
    /// An option is unknown or has an invalid value.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The algorithm could not build a schedule.
    #[error(transparent)]
    Algorithm(#[from] AlgorithmError),
    /// The schedule cannot be placed on the fabric.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// The requested wavelength assignment does not fit the fabric.
    #[error(transparent)]
    Assignment(PlacementError),
    /// The request names a wavelength assignment, but the planner assigns wavelengths itself.
    #[error(
        "`{planner}` assigns wavelengths itself: leave the assignment `{assignment}` out, or name \
         another algorithm"
    )]
    OwnWavelengths {
        /// Name of the planner.
        planner: String,
        /// Name of the requested assignment.
        assignment: String,
    },
    /// The plan exceeds the memory limit.
    #[error(transparent)]
    Memory(#[from] MemoryLimitExceeded),
}
