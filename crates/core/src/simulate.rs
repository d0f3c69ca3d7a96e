//! How long a plan takes: simulators and the policies under which reconfiguration is charged.
//!
//! On a ring of wavelengths one cost model holds for all of them. A lightpath of `hops` links takes
//! `conversion + propagation * hops + bytes / rate`; a slot takes as long as its longest lightpath,
//! after the reconfiguration that the [`Policy`] charges. A simulator never changes a plan and
//! never verifies one.

pub mod background;
pub mod burst;
pub mod circuit;
pub mod closed_form;
pub mod control;
pub mod fluid;
mod link_shares;
pub mod live;
pub mod method;
pub mod on_demand;
pub mod packet;
pub mod pattern;
pub mod setting;
pub mod simulators;
pub mod tasks;

use std::str::FromStr;

use rustc_hash::FxHashMap;
use thiserror::Error;

use crate::algorithm::light_path::LightPathError;
pub use crate::fabric::circuits::Paths;
use crate::fabric::{Circuits, Fabric, Hop, Named};
use crate::interrupt;
use crate::network::Network;
use crate::plan::Plan;
use crate::spec::SpecError;
use crate::spelling::{same_name, shown, suggest};
use crate::units::{Time, UnitError};
use burst::BurstError;
use fluid::FluidError;
pub use method::Method;
use packet::PacketError;
pub use setting::SettingRecord;
pub use simulators::{SIMULATORS, Simulator, default_simulator, run, run_watched, simulate};

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
            PacketError::BrokenOff => SimulationError::Stopped(problem.to_string()),
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

impl From<LightPathError> for SimulationError {
    fn from(problem: LightPathError) -> SimulationError {
        SimulationError::refused("light_path", problem)
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
            SimulationError::Fabric { .. }
            | SimulationError::Refused {
                code: "no_claim", ..
            } => Some("simulator"),
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
    /// On grids of light paths: for each group of slots whose paths the ports hold at once.
    EstablishRelease,
}

impl FromStr for Paths {
    type Err = SimulationError;

    fn from_str(name: &str) -> Result<Paths, SimulationError> {
        named("way with light paths", name, Paths::ALL.iter().copied())
    }
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
        summary: "Charged at a slot that needs a circuit which is not set already",
        citation: "opticoll",
        policy: Policy::OnChange,
    },
    PolicyRecord {
        name: "per_port",
        summary: "Only ports whose circuit changes wait; no barriers between slots",
        citation: "opticoll",
        policy: Policy::PerPort,
    },
    PolicyRecord {
        name: "free",
        summary: "Never charged: static circuits",
        citation: "opticoll",
        policy: Policy::Free,
    },
    PolicyRecord {
        name: "two_tier",
        summary: "Slow switches once for a task, fast lasers where a flow needs another circuit",
        citation: "Li et al., Accelerate Distributed Deep Learning with a Fast Reconfigurable \
                   Optical Network, OFC 2024",
        policy: Policy::TwoTier,
    },
    PolicyRecord {
        name: "establish_release",
        summary: "Light paths are set up, used and released, for as many peers at once as ports",
        citation: "Matsuoka, Takizawa, Nakada, Koga and Takada, MPI Collective Communication over OBS \
                   Grid",
        policy: Policy::EstablishRelease,
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
    let first = policies.first().and_then(|name| name.parse().ok());
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

/// Refuses what has no place on the fabric, so that engines may index freely.
fn admit(plan: &Plan, circuits: &dyn Circuits) -> Result<(), SimulationError> {
    let chunks = u64::from(plan.schedule.collective.chunks());
    let relays = plan.fabric.light().is_some_and(|kind| kind.relays);
    let in_order = plan.relays.is_sorted_by_key(|relay| relay.transfer);
    let mut hops = Vec::new();
    let mut transfers = Vec::new();
    let mut ends = FxHashMap::default();
    let slots = plan.slots();
    for (transfer, moved) in plan.schedule.transfers().enumerate() {
        let relayed = !plan.relays.is_empty();
        match relayed {
            true => hops.extend(plan.way(transfer)),
            false => hops.push(Hop {
                from: moved.source,
                to: moved.destination,
                light: plan.light[transfer],
                slot: plan.slot[transfer],
            }),
        }
        let way = &hops[transfers.len()..];
        let problem = if u64::from(moved.chunk) + u64::from(moved.count) > chunks {
            "it carries chunks that do not exist"
        } else if way.iter().any(|hop| hop.slot >= slots) {
            "its slot is beyond the last"
        } else if relayed && !(in_order && way.is_sorted_by(|one, next| one.slot < next.slot)) {
            "its relays are out of order"
        } else if way.len() > 1 && !relays {
            "ranks relay it, which light between two ranks does without"
        } else {
            transfers.resize(hops.len(), transfer);
            if hops.len() >= HOPS {
                interrupt::check();
                admit_hops(circuits, &hops, &transfers, &mut ends)?;
                hops.clear();
                transfers.clear();
            }
            continue;
        };
        return Err(SimulationError::Transfer { transfer, problem });
    }
    admit_hops(circuits, &hops, &transfers, &mut ends)
}

/// So many hops are looked at together.
const HOPS: usize = 1 << 8;

/// A port of a rank: the rank and the number.
type Port = (u32, u32);

/// Refuses hops that do not exist, each of a transfer, and second paths of a port in a slot; `ends` are the
/// other ends of the paths seen so far, by slot and port.
fn admit_hops(
    circuits: &dyn Circuits,
    hops: &[Hop],
    transfers: &[usize],
    ends: &mut FxHashMap<(u32, Port), Port>,
) -> Result<(), SimulationError> {
    let refused = |hop: usize, problem| {
        let transfer = transfers[hop];
        Err(SimulationError::Transfer { transfer, problem })
    };
    if let Some((hop, problem)) = circuits.refused(hops) {
        return refused(hop, problem);
    }
    for (place, [one, other]) in circuits.ports(hops).into_iter().enumerate() {
        let slot = hops[place].slot;
        let mut holds = |end, other| *ends.entry((slot, end)).or_insert(other) == other;
        if !(holds(one, other) & holds(other, one)) {
            return refused(place, "a port of it holds another path in its slot");
        }
    }
    Ok(())
}

/// The network that a simulator needs.
fn needed_network<'a>(
    fabric: &'a Fabric,
    simulator: &'static str,
) -> Result<&'a dyn Network, SimulationError> {
    fabric.network().ok_or(SimulationError::Fabric {
        simulator,
        family: fabric.family(),
        hint: "it has no links that messages share; use circuit",
    })
}
