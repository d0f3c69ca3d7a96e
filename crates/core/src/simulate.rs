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
pub mod method;
pub mod on_demand;
pub mod packet;
pub mod pattern;

use std::str::FromStr;

use thiserror::Error;

use crate::fabric::{Fabric, Hop, LightPathGrid, TunedLight, WdmRing, WssGrid};
use crate::network::Network;
use crate::outcome::Outcome;
use crate::plan::{Plan, PlanRef};
use crate::spec::SpecError;
use crate::spelling::{same_name, shown, suggest};
use crate::units::{Bytes, Time, UnitError};
use fluid::FluidError;
pub use method::{Method, SETTINGS, SettingRecord};

/// Why a simulation was refused.
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
    /// The paper gives no number of steps for this algorithm.
    #[error(
        "no paper gives a number of steps for `{}`; use the circuit simulator",
        shown(algorithm)
    )]
    NoClaim {
        /// The algorithm.
        algorithm: String,
    },
    /// The simulator does not know this policy.
    #[error(
        "the {simulator} simulator does not know the policy `{}`: {reason}",
        shown(policy)
    )]
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
    /// The run was to be given up at a time that it has reached.
    #[error("the plan takes longer than {limit}")]
    TooLong {
        /// [`Method::limit`].
        limit: Time,
    },
    /// Flows that wait for one another: the plan was not verified.
    #[error(
        "{flows} flows never arrive: they wait for data that never comes; verify the plan first"
    )]
    Stuck {
        /// How many.
        flows: u64,
    },
    /// A time left 64 bits.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// The simulator is for other fabrics.
    #[error("the {simulator} simulator cannot run on {family}: {hint}")]
    WrongFabric {
        /// The simulator.
        simulator: &'static str,
        /// The family of the fabric.
        family: &'static str,
        /// Why, and what would do.
        hint: &'static str,
    },
    /// A setting that the simulator does not know.
    #[error(
        "the {simulator} simulator does not know the setting `{}`, which is one of {of}; \
         leave the {} out",
        shown(setting),
        shown(setting)
    )]
    Setting {
        /// The simulator.
        simulator: &'static str,
        /// The setting.
        setting: &'static str,
        /// The simulators that know it.
        of: String,
    },
    /// The value of a setting does not fit.
    #[error("{}: {problem}", shown(setting))]
    Value {
        /// The setting.
        setting: &'static str,
        /// What is wrong with it.
        problem: Box<SimulationError>,
    },
    /// The text of a setting is none.
    #[error("{problem}")]
    Text {
        /// What is wrong, and what would do.
        problem: String,
    },
    /// The spelling of a setting is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// Traffic that the fabric or the simulator cannot have.
    #[error("background: {problem}")]
    Background {
        /// What is wrong, and what would do.
        problem: String,
    },
    /// The flows of a plan were refused: it was not verified.
    #[error(transparent)]
    Fluid(#[from] FluidError),
    /// The formulas of light paths do not say.
    #[error(transparent)]
    LightPath(#[from] crate::algorithm::light_path::LightPathError),
    /// The packets of a plan were refused, or stand still.
    #[error(transparent)]
    Packet(#[from] packet::PacketError),
    /// Light that does not get there.
    #[error(transparent)]
    OnDemand(#[from] on_demand::OnDemandError),
    /// Light paths in a network of bursts.
    #[error(transparent)]
    Bursts(Box<burst::BurstError>),
}

impl From<burst::BurstError> for SimulationError {
    /// Boxed: it is larger than the others.
    fn from(problem: burst::BurstError) -> SimulationError {
        SimulationError::Bursts(Box::new(problem))
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

/// When light paths of a grid of light paths go, under [`Policy::EstablishRelease`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Paths {
    /// After the group of slots for which they were set up.
    #[default]
    Released,
    /// When their ports are needed: each rank keeps the paths that it used last.
    Kept,
    /// The same, and at first there are those that an earlier run of the plan has left.
    Warm,
}

impl Paths {
    /// All of them, with their names as typed.
    pub const ALL: [(&'static str, Paths); 3] = [
        ("released", Paths::Released),
        ("kept", Paths::Kept),
        ("warm", Paths::Warm),
    ];
}

impl FromStr for Paths {
    type Err = SimulationError;

    fn from_str(name: &str) -> Result<Paths, SimulationError> {
        let found = Paths::ALL
            .into_iter()
            .find(|(known, _)| same_name(known, name));
        found
            .map(|(_, paths)| paths)
            .ok_or_else(|| SimulationError::Unknown {
                what: "way with light paths",
                name: name.into(),
                hint: suggest(name, Paths::ALL.map(|(name, _)| name)),
            })
    }
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

/// All policies, in the order of [`Policy`]; the first is the default on rings of wavelengths.
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
    Record {
        name: "two_tier",
        summary: "Slow switches once for a task, fast lasers where a flow needs another circuit",
        citation: "Li et al., Accelerate Distributed Deep Learning with a Fast Reconfigurable \
                   Optical Network, OFC 2024",
    },
    Record {
        name: "establish_release",
        summary: "Light paths are set up, used and released, for as many peers at once as ports",
        citation: "Matsuoka, Takizawa, Nakada, Koga and Takada, MPI Collective Communication over OBS \
                   Grid",
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
    Record {
        name: "fluid",
        summary: "Flows share the links of electrical fabrics max-min fairly, under a start rule",
        citation: "Bertsekas and Gallager, Data Networks, section 6.5; SimGrid's model without its \
                   corrections",
    },
    Record {
        name: "packet",
        summary: "Chunks of messages on electrical fabrics, with virtual channels, credits and buffers",
        citation: "Mubarak et al., A Case Study in Using Massively Parallel Simulation for \
                   Extreme-Scale Torus Network Codesign, 2014; CODES's dragonfly",
    },
    Record {
        name: "control",
        summary: "Tunable circuits flow by flow: request, grant, tune, lock, send and release",
        citation: "Li et al., Accelerate Distributed Deep Learning with a Fast Reconfigurable \
                   Optical Network, OFC 2024",
    },
];

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
        Policy::ALL
            .into_iter()
            .chain([Policy::TwoTier, Policy::EstablishRelease])
            .find(|policy| same_name(policy.name(), name))
            .ok_or_else(|| SimulationError::Unknown {
                what: "policy",
                name: name.into(),
                hint: suggest(name, POLICIES.iter().map(|record| record.name)),
            })
    }
}

impl SimulationError {
    /// The setting at fault, where it is one.
    pub fn setting(&self) -> Option<&'static str> {
        match self {
            SimulationError::Setting { setting, .. } | SimulationError::Value { setting, .. } => {
                Some(setting)
            }
            SimulationError::Policy { .. } => Some("policy"),
            SimulationError::Background { .. } => Some("background"),
            SimulationError::WrongFabric { .. } | SimulationError::NoClaim { .. } => {
                Some("simulator")
            }
            SimulationError::Unknown { what, .. } if *what == "simulator" => Some(what),
            _ => None,
        }
    }
}

/// The length at first of the bins of a time-line of packets.
pub const TIMELINE_BIN: Time = Time::from_ps(10_000);

/// The simulator that is used on a fabric where none is named.
pub fn default_simulator(fabric: &Fabric) -> &'static str {
    match fabric {
        Fabric::WdmRing(_) | Fabric::LightPathGrid(_) => "circuit",
        Fabric::WssGrid(_) => "control",
        _ => "fluid",
    }
}

/// The policy that is used on a fabric of light where none is named.
pub fn default_policy(fabric: &Fabric) -> Policy {
    match fabric {
        Fabric::WssGrid(_) => Policy::TwoTier,
        Fabric::LightPathGrid(_) => Policy::EstablishRelease,
        _ => Policy::ALL[0],
    }
}

/// Times a plan.
///
/// # Errors
/// An unknown simulator or one for other fabrics, a setting that it does not know, a plan whose
/// transfers leave the fabric, or a time beyond 64 bits of picoseconds.
pub fn run<'a>(
    plan: impl Into<PlanRef<'a>>,
    size: Bytes,
    method: &Method,
) -> Result<Outcome, SimulationError> {
    run_watched(plan, size, method, &mut |_| true)
}

/// The same; the packet simulator tells `watch` about every million events how far it is, and is broken
/// off where that says no.
///
/// # Errors
/// Those of [`run`], and [`PacketError::BrokenOff`](packet::PacketError::BrokenOff).
pub fn run_watched<'a>(
    plan: impl Into<PlanRef<'a>>,
    size: Bytes,
    method: &Method,
    watch: &mut dyn FnMut(&packet::Progress) -> bool,
) -> Result<Outcome, SimulationError> {
    let plan = plan.into();
    let kept = plan.kept();
    // A policy that lasers tuned flow by flow do not have is one of slots.
    let by_slots = kept.fabric.wss_grid().is_some()
        && method
            .policy
            .is_some_and(|policy| policy != Policy::TwoTier);
    let default = match by_slots {
        true => "circuit",
        false => default_simulator(&kept.fabric),
    };
    let simulator = method.simulator.unwrap_or(default);
    // The fabric comes first: to someone on the wrong one a setting is no mistake.
    match simulator {
        "fluid" | "packet" => _ = needed_network(&kept.fabric, simulator)?,
        "control" => _ = needed_grid(&kept.fabric, simulator)?,
        "circuit" if kept.fabric.wss_grid().is_some() => {}
        "circuit" | "closed_form" if kept.fabric.light_path_grid().is_some() => {}
        _ => _ = needed_ring(&kept.fabric, simulator)?,
    }
    method.known_to(simulator)?;
    let policy = method.policy.unwrap_or(default_policy(&kept.fabric));
    if method.paths.is_some() {
        needed_light_paths(&kept.fabric, simulator).map_err(|problem| SimulationError::Value {
            setting: "paths",
            problem: Box::new(problem),
        })?;
    }
    match simulator {
        "fluid" => {
            let options = fluid_options(&kept.fabric, method)?;
            fluid::simulate_plan(kept, size, method.start.unwrap_or_default(), &options)
        }
        "packet" => {
            let settings = packet_settings(&kept.fabric, method)?;
            packet::simulate_plan(kept, size, &settings, watch)
        }
        "closed_form" => Ok(Outcome {
            utilisation: circuit::utilisation(plan),
            ..closed_form::simulate(plan, size, policy)?
        }),
        "control" if policy != Policy::TwoTier => Err(SimulationError::Policy {
            simulator,
            policy: policy.name(),
            reason: "lasers are tuned flow by flow; use two_tier, or the circuit simulator",
        }),
        "control" => control::simulate_within(kept, size, method.limit),
        _ if kept.fabric.light_path_grid().is_some() => {
            circuit::light_paths::simulate(kept, size, policy, method.paths.unwrap_or_default())
        }
        _ => circuit::simulate(plan, size, policy),
    }
}

/// The options of flows, with the traffic beside the plan.
///
/// # Errors
/// Traffic that the fabric cannot have.
pub fn fluid_options(fabric: &Fabric, method: &Method) -> Result<fluid::Options, SimulationError> {
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
) -> Result<packet::Settings, SimulationError> {
    let mut settings = method.packet.clone();
    for traffic in &method.background {
        let beside = traffic.packets(fabric, packet::Draws::Background)?;
        settings.background.push(beside);
    }
    Ok(settings)
}

/// The ring of wavelengths that a simulator needs.
fn needed_ring<'a>(
    fabric: &'a Fabric,
    simulator: &'static str,
) -> Result<&'a WdmRing, SimulationError> {
    fabric.ring().ok_or(SimulationError::WrongFabric {
        simulator,
        family: fabric.family(),
        hint: match (fabric.wss_grid(), fabric.has_light()) {
            (Some(_), _) => "light goes around no ring there; use control or circuit",
            (None, true) => "light goes around no ring there; use circuit",
            (None, false) => "it is an electrical fabric without circuits; use fluid",
        },
    })
}

/// The grid that a simulator needs.
fn needed_grid<'a>(
    fabric: &'a Fabric,
    simulator: &'static str,
) -> Result<&'a WssGrid, SimulationError> {
    fabric.wss_grid().ok_or(SimulationError::WrongFabric {
        simulator,
        family: fabric.family(),
        hint: match fabric.has_light() {
            true => "its lasers are not tuned flow by flow; use circuit or closed_form",
            false => "it is an electrical fabric without circuits; use fluid",
        },
    })
}

/// The grid of light paths that a simulator or a setting needs.
fn needed_light_paths<'a>(
    fabric: &'a Fabric,
    simulator: &'static str,
) -> Result<&'a LightPathGrid, SimulationError> {
    fabric
        .light_path_grid()
        .ok_or(SimulationError::WrongFabric {
            simulator,
            family: fabric.family(),
            hint: "its ports hold no light paths that are set up and released; a light_path_grid has \
                   such",
        })
}

/// Refuses what has no place on a grid of tunable circuits, so that engines may index freely.
fn check_grid(plan: &Plan, grid: &WssGrid) -> Result<(), SimulationError> {
    let chunks = u64::from(plan.schedule.collective.chunks());
    let ranks = grid.ranks();
    let in_order = plan.relays.is_sorted_by_key(|relay| relay.transfer);
    for transfer in 0..plan.len() {
        let moved = plan.schedule.transfer(transfer);
        let sound = |hop: Hop| {
            let light = TunedLight::from(hop.light);
            hop.from < ranks
                && hop.to < ranks
                && light.plane < 2
                && u32::from(light.wavelength) < grid.wavelengths
                && hop.slot < plan.slots()
        };
        let increasing = plan
            .way(transfer)
            .is_sorted_by(|one, next| one.slot < next.slot);
        let problem = if u64::from(moved.chunk) + u64::from(moved.count) > chunks {
            "it carries chunks that do not exist"
        } else if !plan.way(transfer).all(sound) {
            "a rank, its transceiver, wavelength or slot does not exist"
        } else if !(in_order && increasing) {
            "its relays are out of order"
        } else {
            continue;
        };
        return Err(SimulationError::Transfer { transfer, problem });
    }
    Ok(())
}

/// The network that a simulator needs.
fn needed_network<'a>(
    fabric: &'a Fabric,
    simulator: &'static str,
) -> Result<&'a dyn Network, SimulationError> {
    fabric.network().ok_or(SimulationError::WrongFabric {
        simulator,
        family: fabric.family(),
        hint: match fabric.wss_grid() {
            Some(_) => "it has no links that messages share; use control or circuit",
            None => "it has no links that messages share; use circuit or closed_form",
        },
    })
}

/// Runs the simulator with a name on a ring of wavelengths.
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
    let method = Method {
        simulator: Some(method::simulator(simulator)?),
        policy: Some(policy),
        ..Method::default()
    };
    run(plan, size, &method)
}
