//! Why no plan was made.

use thiserror::Error;

use opticoll_algorithms::AlgorithmError;
use opticoll_base::memory::MemoryLimitExceeded;
use opticoll_base::spec::SpecError;
use opticoll_base::units::UnitError;
use opticoll_fabric::fabric::WrongFamily;
use opticoll_placement::PlacementError;
use opticoll_plan::collective::{CollectiveError, CollectiveKind};
use opticoll_simulate::SimulationError;

/// Why no plan was made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlannerError {
    /// The planner does not know this collective.
    #[error("relay trees carry out all_gather, not {kind}; {hint}")]
    Collective {
        /// The collective.
        kind: CollectiveKind,
        /// What would do.
        hint: &'static str,
    },
    /// The fabric and the collective differ in their number of ranks.
    #[error("the collective has {collective} ranks, the fabric {fabric}")]
    Ranks {
        /// Ranks of the collective.
        collective: u32,
        /// Ranks of the fabric.
        fabric: u32,
    },
    /// The plan would not fit into memory.
    #[error("a plan of {transfers} transfers is too large: {most} at most; fewer ranks or pieces")]
    TooLarge {
        /// The transfers that it would have.
        transfers: u64,
        /// The most allowed.
        most: u64,
    },
    /// Some rank cannot reach some other.
    #[error(
        "the ring falls apart: cuts, or links to the next rank that are longer than light reaches, leave ranks that \
         cannot reach others; a ring can lose links of one direction in any places, such as 3-4cw+9-10cw, or both directions between one \
         pair of neighbours, such as 3-4"
    )]
    CutOff,
    /// No trees were found.
    #[error("no relay trees found for blocks of {pieces} pieces; whole blocks (1 piece) will do")]
    NotFound {
        /// The pieces of a block.
        pieces: u32,
    },
    /// No plan is small enough.
    #[error("every plan has more than {most} transfers")]
    NothingFits {
        /// The most transfers allowed.
        most: u64,
    },
    /// The root of a collective is no longer part of it.
    #[error("the root, node {node}, has left; plan a collective with another root")]
    RootLeft {
        /// Its node.
        node: u32,
    },
    /// A plan could not be simulated.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// A time left 64 bits.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// The fabric is no ring of light.
    #[error(transparent)]
    WrongFamily(#[from] WrongFamily),
    /// The collective could not be made.
    #[error(transparent)]
    CollectiveSize(#[from] CollectiveError),
    /// An option is unknown or does not fit.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A named algorithm failed.
    #[error(transparent)]
    Algorithm(#[from] AlgorithmError),
    /// A schedule has no place on the fabric.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// A wavelength assignment that was asked for does not fit.
    #[error(transparent)]
    Assignment(PlacementError),
    /// A wavelength assignment for a planner that has its own.
    #[error(
        "`{planner}` assigns wavelengths by itself: leave the assignment `{assignment}` out, or name \
         another algorithm"
    )]
    OwnWavelengths {
        /// The planner.
        planner: String,
        /// The assignment.
        assignment: String,
    },
    /// More memory than the limit.
    #[error(transparent)]
    Memory(#[from] MemoryLimitExceeded),
}
