//! How long a plan takes: simulators and the policies under which reconfiguration is charged.
//!
//! One cost model holds for all of them. A lightpath of `hops` links takes
//! `conversion + propagation * hops + bytes / rate`; a slot takes as long as its longest lightpath,
//! after the reconfiguration that the [`Policy`] charges. A simulator never changes a plan and
//! never verifies one.

pub mod circuit;
pub mod closed_form;
pub mod fluid;

use std::str::FromStr;

use thiserror::Error;

use crate::fabric::NotARing;
use crate::outcome::Outcome;
use crate::plan::PlanRef;
use crate::spelling::{same_name, suggest};
use crate::units::{Bytes, UnitError};

/// Why a simulation was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SimulationError {
    /// No simulator or policy has this name.
    #[error("unknown {what} `{name}`{hint}")]
    Unknown {
        /// `simulator` or `policy`.
        what: &'static str,
        /// The name as given.
        name: String,
        /// The nearest known name, or all of them.
        hint: String,
    },
    /// The paper gives no number of steps for this algorithm.
    #[error("no paper gives a number of steps for `{algorithm}`; use the circuit simulator")]
    NoClaim {
        /// The algorithm.
        algorithm: String,
    },
    /// The simulator does not know this policy.
    #[error("the {simulator} simulator does not know the policy `{policy}`: {reason}")]
    Policy {
        /// The simulator.
        simulator: &'static str,
        /// The policy.
        policy: &'static str,
        /// Why, and what would do.
        reason: &'static str,
    },
    /// A transfer that no fabric carries: the plan was not verified.
    #[error("transfer {transfer} cannot be simulated: {problem}; verify the plan first")]
    Transfer {
        /// The transfer's index in the plan.
        transfer: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The quotient of a folded plan by the rotations that keep channels has too many transfers.
    #[error(
        "without barriers a plan with lightpaths of so many lengths is simulated as {transfers} \
         transfers: {most} at most; another policy will do"
    )]
    TooLarge {
        /// The transfers to simulate.
        transfers: u64,
        /// The most allowed.
        most: u64,
    },
    /// A time left 64 bits.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// The fabric is no ring of light.
    #[error(transparent)]
    NotARing(#[from] NotARing),
}

/// When reconfiguration is charged. Comparisons are only made inside one policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// At every slot, as the OpTree and WRHT papers do.
    EveryStep,
    /// At a slot that needs a circuit which the setting in force does not have; the slot's
    /// circuits are then the setting in force. A slot that uses only some of them is free.
    OnChange,
    /// Only ports whose circuit changes wait; everything else goes on, without barriers.
    PerPort,
    /// Never: static circuits.
    Free,
}

/// The declaration of a policy or a simulator.
pub struct Record {
    /// As typed.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Where it comes from.
    pub citation: &'static str,
}

/// All policies, in the order of [`Policy::ALL`]; the first is the default.
pub const POLICIES: &[Record] = &[
    Record {
        name: "every_step",
        summary: "Reconfiguration is charged at every slot",
        citation: "Dai et al., OpTree, section III.D; WRHT poster",
    },
    Record {
        name: "on_change",
        summary: "Charged at a slot that needs a circuit which is not set already",
        citation: "opticoll",
    },
    Record {
        name: "per_port",
        summary: "Only ports whose circuit changes wait; no barriers between slots",
        citation: "opticoll",
    },
    Record {
        name: "free",
        summary: "Never charged: static circuits",
        citation: "opticoll",
    },
];

/// All simulators; the first is the default.
pub const SIMULATORS: &[Record] = &[
    Record {
        name: "circuit",
        summary: "The plan slot by slot, lightpath by lightpath, under any policy",
        citation: "opticoll",
    },
    Record {
        name: "closed_form",
        summary: "The paper's number of steps times the paper's time of a step",
        citation: "Dai et al., OpTree, Theorem 3; WRHT poster, section 2",
    },
];

impl Policy {
    /// All policies, in the order of [`POLICIES`].
    pub const ALL: [Policy; 4] = [
        Policy::EveryStep,
        Policy::OnChange,
        Policy::PerPort,
        Policy::Free,
    ];

    /// The name as typed.
    pub fn name(self) -> &'static str {
        POLICIES[self as usize].name
    }
}

impl FromStr for Policy {
    type Err = SimulationError;

    fn from_str(name: &str) -> Result<Policy, SimulationError> {
        Policy::ALL
            .into_iter()
            .find(|policy| same_name(policy.name(), name))
            .ok_or_else(|| SimulationError::Unknown {
                what: "policy",
                name: name.into(),
                hint: suggest(name, POLICIES.iter().map(|record| record.name)),
            })
    }
}

/// Runs the simulator with a name.
///
/// # Errors
/// An unknown name, a policy that the simulator does not know, a plan whose transfers leave the
/// fabric, or a time beyond 64 bits of picoseconds.
pub fn simulate<'a>(
    plan: impl Into<PlanRef<'a>>,
    size: Bytes,
    policy: Policy,
    simulator: &str,
) -> Result<Outcome, SimulationError> {
    let known = SIMULATORS.iter().map(|record| record.name);
    match known.clone().find(|name| same_name(name, simulator)) {
        Some("closed_form") => closed_form::simulate(plan, size, policy),
        Some(_) => circuit::simulate(plan, size, policy),
        None => Err(SimulationError::Unknown {
            what: "simulator",
            name: simulator.into(),
            hint: suggest(simulator, known),
        }),
    }
}
