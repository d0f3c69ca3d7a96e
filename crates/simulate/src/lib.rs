//! How long a plan takes: simulators and the policies under which reconfiguration is charged.
//!
//! On a ring of wavelengths one cost model holds for all of them. A lightpath of `hops` links takes
//! `conversion + propagation * hops + bytes / rate` (flit by flit: [`opticoll_fabric::fabric::transmission`]); a slot
//! takes as long as its longest lightpath, after the reconfiguration that the [`Policy`] charges. A simulator never changes a plan and
//! never verifies one.
#![forbid(unsafe_code)]

pub mod background;
pub mod bulk_synchronous;
pub mod burst;
pub mod circuit;
pub mod control;
pub mod fluid;
mod link_shares;
pub mod live;
pub mod method;
pub mod on_demand;
pub mod outcome;
pub mod packet;
pub mod pattern;
pub mod setting;
pub mod simulators;
pub mod table;
pub mod tasks;

use std::str::FromStr;

use thiserror::Error;

use burst::BurstError;
use fluid::FluidError;
pub use method::{Method, Simulator};
use opticoll_base::names::{same_name, shown, suggest};
use opticoll_base::spec::SpecError;
use opticoll_base::units::{Time, UnitError};
pub use opticoll_fabric::fabric::circuits::Paths;
use opticoll_fabric::fabric::circuits::{Circuit, NoCircuit};
use opticoll_fabric::fabric::{Circuits, Fabric, Hop, Named};
use opticoll_fabric::network::Network;
use opticoll_plan::plan::{Plan, Relay};
use packet::PacketError;
pub use setting::SettingRecord;
pub use simulators::{SIMULATORS, default_simulator, run, run_watched, simulate};

/// Why a simulation was refused or broken off.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SimulationError {
    /// No simulator or policy has this name.
    #[error("unknown {what} `{}`{hint}", shown(name))]
    Unknown {
        /// `simulator`, `policy` or what else has names.
        what: &'static str,
        /// The name as given.
        name: String,
        /// The nearest known name, or all of them.
        hint: String,
    },
    /// The simulator is for other fabrics.
    #[error("the {simulator} simulator cannot run on {family}: {hint}")]
    Fabric {
        /// The simulator.
        simulator: &'static str,
        /// The family of the fabric.
        family: &'static str,
        /// Why, and what would do.
        hint: &'static str,
    },
    /// A setting that the simulator does not know, or whose value does not fit.
    #[error("{problem}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// What is wrong, and what would do.
        problem: String,
    },
    /// A transfer that no fabric carries: the plan was not verified.
    #[error("transfer {transfer} cannot be simulated: {problem}; verify the plan first")]
    Transfer {
        /// The transfer's index in the plan.
        transfer: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A simulator cannot time this plan or traffic.
    #[error("{problem}")]
    Refused {
        /// Which problem of which simulator, in one word.
        code: &'static str,
        /// What is wrong, and what would do.
        problem: String,
    },
    /// The run was given up or broken off.
    #[error("{0}")]
    Stopped(String),
    /// A time left 64 bits.
    #[error(transparent)]
    Unit(#[from] UnitError),
}

impl From<FluidError> for SimulationError {
    fn from(problem: FluidError) -> SimulationError {
        match problem {
            FluidError::TooLong { .. } => SimulationError::Stopped(problem.to_string()),
            FluidError::Unit(problem) => problem.into(),
            _ => SimulationError::refused("flows", problem),
        }
    }
}

impl From<PacketError> for SimulationError {
    fn from(problem: PacketError) -> SimulationError {
        match problem {
            PacketError::Stopped => SimulationError::Stopped(problem.to_string()),
            PacketError::Unit(problem) => problem.into(),
            _ => SimulationError::refused("packets", problem),
        }
    }
}

impl From<SpecError> for SimulationError {
    fn from(problem: SpecError) -> SimulationError {
        SimulationError::refused("text", problem)
    }
}

impl From<BurstError> for SimulationError {
    fn from(problem: BurstError) -> SimulationError {
        match problem.setting() {
            Some(setting) => SimulationError::Setting {
                setting,
                problem: problem.to_string(),
            },
            None => SimulationError::refused("bursts", problem),
        }
    }
}

impl SimulationError {
    /// A problem of a simulator in words.
    pub fn refused(code: &'static str, problem: impl std::fmt::Display) -> SimulationError {
        SimulationError::Refused {
            code,
            problem: problem.to_string(),
        }
    }

    /// A value of a setting that does not fit.
    pub fn value(setting: &'static str, problem: impl std::fmt::Display) -> SimulationError {
        SimulationError::Setting {
            setting,
            problem: format!("{setting}: {problem}"),
        }
    }

    /// A policy that does not fit the simulator; the reason says what would do.
    pub fn policy(simulator: &str, policy: Policy, reason: &str) -> SimulationError {
        SimulationError::Setting {
            setting: "policy",
            problem: format!(
                "the {simulator} simulator does not know the policy `{}`: {reason}",
                policy.name()
            ),
        }
    }

    /// A setting that the simulator does not know; `of` says what does.
    pub fn foreign(simulator: &str, setting: &'static str, of: &str) -> SimulationError {
        SimulationError::Setting {
            setting,
            problem: format!(
                "the {simulator} simulator does not know the setting `{setting}`, which is one of {of}; \
                 leave the {setting} out"
            ),
        }
    }

    /// The setting at fault, where it is one.
    pub fn setting(&self) -> Option<&'static str> {
        match self {
            SimulationError::Setting { setting, .. } => Some(setting),
            SimulationError::Fabric { .. } => Some("simulator"),
            SimulationError::Unknown { what, .. } if *what == "simulator" => Some(what),
            _ => None,
        }
    }
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
    /// On grids of tunable circuits: the slow switches once for a task, lasers flow by flow, where
    /// their circuit changes.
    TwoTier,
    /// On grids of lightpaths: for each group of slots whose paths the ports hold at once.
    EstablishRelease,
    /// On circuit switches: for each group of slots whose circuits the ports hold at once, nothing being sent meanwhile.
    AllStop,
    /// On circuit switches side by side: the same for each, while the others go on.
    Planes,
}

/// The declaration of a policy, or of a start rule.
pub struct PolicyRecord<P> {
    /// As typed.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Where it comes from.
    pub citation: &'static str,
    /// What it stands for.
    pub policy: P,
}

/// All policies, in the order of [`Policy`]; the first is the default on rings of wavelengths.
pub const POLICIES: &[PolicyRecord<Policy>] = &[
    PolicyRecord {
        name: "every_step",
        summary: "Reconfiguration is charged at every slot",
        citation: "Dai et al., OpTree, section III.D; WRHT poster",
        policy: Policy::EveryStep,
    },
    PolicyRecord {
        name: "on_change",
        summary: "Reconfiguration is charged once for each run of slots whose circuits fit side by side",
        citation: "opticoll",
        policy: Policy::OnChange,
    },
    PolicyRecord {
        name: "per_port",
        summary: "Reconfiguration is charged to ports whose circuit changes; no barriers between slots",
        citation: "opticoll",
        policy: Policy::PerPort,
    },
    PolicyRecord {
        name: "free",
        summary: "Reconfiguration is never charged: static circuits",
        citation: "opticoll",
        policy: Policy::Free,
    },
    PolicyRecord {
        name: "two_tier",
        summary: "Slow switches are set once for a task; a laser is tuned if a flow needs another circuit",
        citation: "Li et al., Accelerate Distributed Deep Learning with a Fast Reconfigurable \
                   Optical Network, OFC 2024",
        policy: Policy::TwoTier,
    },
    PolicyRecord {
        name: "establish_release",
        summary: "Lightpaths are set up, used and torn down, for as many partners at a time as a rank has ports",
        citation: "Matsuoka, Takizawa, Nakada, Koga and Takada, MPI Collective Communication over OBS \
                   Grid",
        policy: Policy::EstablishRelease,
    },
    PolicyRecord {
        name: "all_stop",
        summary: "The whole switch is dark while its setting changes: once for each run of slots in which no port changes \
                  its circuit",
        citation: "Wang et al., Your Data Center Switch is Trying Too Hard, SOSR 2016; opticoll",
        policy: Policy::AllStop,
    },
    PolicyRecord {
        name: "planes",
        summary: "A switch is dark while its setting changes, and the others beside it go on",
        citation: "opticoll",
        policy: Policy::Planes,
    },
];

/// What a name of something stands for.
fn named<V>(
    what: &'static str,
    name: &str,
    mut known: impl Iterator<Item = (&'static str, V)> + Clone,
) -> Result<V, SimulationError> {
    let names = known.clone().map(|(known, _)| known);
    let found = known.find(|(known, _)| same_name(known, name));
    found
        .map(|(_, value)| value)
        .ok_or_else(|| SimulationError::Unknown {
            what,
            name: name.into(),
            hint: suggest(name, names),
        })
}

impl Policy {
    /// All policies on rings of wavelengths.
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
        let known = POLICIES.iter().map(|one| (one.name, one.policy));
        named("policy", name, known)
    }
}

/// The length at first of the bins of a time-line of packets.
pub const TIMELINE_BIN: Time = Time::from_ps(10_000);

/// The policy that is used on a fabric with circuits where none is named.
pub fn default_policy(fabric: &Fabric) -> Policy {
    let policies = fabric
        .circuits()
        .map_or(&[][..], |circuits| circuits.policies());
    let first = policies.first().and_then(|(name, _)| name.parse().ok());
    first.unwrap_or(Policy::EveryStep)
}

/// The options of flows, with the traffic beside the plan.
///
/// # Errors
/// Traffic that the fabric cannot have.
pub fn fluid_options(
    fabric: &Fabric,
    method: &Method,
) -> Result<fluid::FlowOptions, SimulationError> {
    let mut options = method.fluid.clone();
    options.limit = method.limit;
    for traffic in &method.background {
        options.background.extend(traffic.flows(fabric)?);
    }
    Ok(options)
}

/// The settings of packets, with the traffic beside the plan.
///
/// # Errors
/// Traffic that the fabric or the simulator cannot have.
pub fn packet_settings(
    fabric: &Fabric,
    method: &Method,
) -> Result<packet::PacketSettings, SimulationError> {
    let mut settings = method.packet.clone();
    for traffic in &method.background {
        let beside = traffic.packets(fabric, packet::Draws::Background)?;
        settings.background.push(beside);
    }
    Ok(settings)
}

/// The machine of a family that a simulator needs.
fn needed<'a, M: Named>(
    fabric: &'a Fabric,
    simulator: &'static str,
) -> Result<&'a M, SimulationError> {
    fabric.downcast().ok_or(SimulationError::Fabric {
        simulator,
        family: fabric.family(),
        hint: match fabric.has_light() {
            true => "its light goes other ways; use circuit",
            false => "it is an electrical fabric without circuits; use fluid",
        },
    })
}

/// The circuits that a simulator needs.
fn needed_circuits<'a>(
    fabric: &'a Fabric,
    simulator: &'static str,
) -> Result<&'a dyn Circuits, SimulationError> {
    fabric.circuits().ok_or(SimulationError::Fabric {
        simulator,
        family: fabric.family(),
        hint: "it is an electrical fabric without circuits; use fluid",
    })
}

/// Refuses slots that do not exist and relays out of order, so that engines may go through slots freely.
fn admit(plan: &Plan) -> Result<(), SimulationError> {
    let refused = |transfer: usize, problem| Err(SimulationError::Transfer { transfer, problem });
    let slots = plan.slots();
    let missing = "its slot is beyond the last";
    if let Some(transfer) = plan.slot.iter().position(|&slot| slot >= slots) {
        return refused(transfer, missing);
    }
    let relayed = plan.fabric.light().is_some_and(|kind| kind.relays);
    let circuits = plan.fabric.circuits();
    let cuts_through = circuits.is_some_and(|circuits| circuits.cuts_through());
    let mut before: Option<&Relay> = None;
    for relay in &plan.relays {
        let transfer = relay.transfer as usize;
        let same = before.filter(|before| before.transfer == relay.transfer);
        let arrived = same.map_or(plan.slot.get(transfer), |before| Some(&before.slot));
        let in_order = before.is_none_or(|before| before.transfer <= relay.transfer);
        if !relayed {
            return refused(
                transfer,
                "ranks relay it, which light between two ranks does without",
            );
        }
        let follows = |slot: u32| slot < relay.slot || cuts_through && slot == relay.slot;
        if !in_order || !arrived.is_some_and(|&slot| follows(slot)) {
            return refused(transfer, "its relays are out of order");
        }
        if relay.slot >= slots {
            return refused(transfer, missing);
        }
        before = Some(relay);
    }
    Ok(())
}

/// Refuses routes over links that do not exist; whether they lead anywhere is the verifier's business.
fn admit_routes(plan: &Plan, network: &dyn Network) -> Result<(), SimulationError> {
    let count = network.links().len() as u32;
    let outside = (0..plan.routes.len() as u32)
        .find(|&route| plan.routes.links(route).iter().any(|&link| link >= count));
    let Some(route) = outside else {
        return Ok(());
    };
    let uses = |&transfer: &usize| plan.routes.number(transfer) == route;
    Err(SimulationError::Transfer {
        transfer: (0..plan.len()).find(uses).unwrap_or(0),
        problem: "its route has a link that the fabric does not have",
    })
}

/// The error that a transfer carries chunks which its collective does not have.
#[cold]
fn no_chunks(transfer: usize) -> SimulationError {
    SimulationError::Transfer {
        transfer,
        problem: "it carries chunks that do not exist",
    }
}

/// Appends the circuits of hops, which refuses those that do not exist; `transfer_of` says what a hop is part
/// of.
fn measure(
    circuits: &dyn Circuits,
    hops: &[Hop],
    of_hops: &mut Vec<Circuit>,
    transfer_of: impl Fn(usize) -> u32,
) -> Result<(), SimulationError> {
    match circuits.measure(hops, of_hops) {
        Ok(()) => Ok(()),
        Err(NoCircuit::Unit(problem)) => Err(problem.into()),
        Err(NoCircuit::Absent { hop, problem }) => Err(SimulationError::Transfer {
            transfer: transfer_of(hop) as usize,
            problem,
        }),
    }
}

/// The network that a simulator needs.
fn needed_network<'a>(
    fabric: &'a Fabric,
    simulator: &'static str,
) -> Result<&'a dyn Network, SimulationError> {
    fabric.network().ok_or(SimulationError::Fabric {
        simulator,
        family: fabric.family(),
        hint: NO_LINKS,
    })
}

/// Why messages do not flow over a fabric with circuits, and what times its plans.
const NO_LINKS: &str = "it has no links that messages share; use circuit";
