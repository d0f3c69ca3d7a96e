//! Simulators, which compute the time of a plan, and policies, which define when a reconfiguration
//! costs time.
//!
//! On a WDM ring all simulators use one cost model. A lightpath of `hops` links takes `conversion +
//! propagation * hops + bytes / rate`, with the bytes rounded up to whole flits (see
//! [`opticoll_fabric::fabric::transmission`]). The duration of a slot is the reconfiguration time
//! that the [`Policy`] charges plus the time of the slot's longest lightpath. A simulator neither
//! changes nor verifies a plan.
#![forbid(unsafe_code)]

pub mod background;
pub mod bulk_synchronous;
pub mod burst;
pub mod circuit;
pub mod control;
pub mod fluid;
mod in_network;
pub mod library_cost;
mod light_routes;
mod link_shares;
pub mod live;
pub mod on_demand;
pub mod outcome;
pub mod packet;
pub mod passed_parts;
pub mod pattern;
pub mod setting;
pub mod simulators;
pub mod table;
pub mod tasks;
pub mod timing_model;

use std::str::FromStr;

use thiserror::Error;

use burst::BurstError;
use fluid::FluidError;
use in_network::Groups;
use opticoll_base::names::{same_name, suggest, terminal_text};
use opticoll_base::spec::SpecError;
use opticoll_base::units::{Time, UnitError};
pub use opticoll_fabric::fabric::circuits::Paths;
use opticoll_fabric::fabric::circuits::{Circuit, NoCircuit};
use opticoll_fabric::fabric::{Circuits, Fabric, Hop, Named};
use opticoll_fabric::network::Network;
use opticoll_plan::plan::{NamedRoutes, Plan, Relay};
use packet::PacketError;
pub use setting::SettingRecord;
pub use simulators::{SIMULATORS, default_simulator, run, run_watched, simulate};
pub use timing_model::{Simulator, TimingModel};

/// Reason why a simulator rejected a plan or stopped before the end.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SimulationError {
    /// No simulator or policy has this name.
    #[error("unknown {what} `{}`{hint}", terminal_text(name))]
    Unknown {
        /// Kind of the name, such as `simulator` or `policy`.
        what: &'static str,
        /// The name as given.
        name: String,
        /// Suggestion of the nearest known name, or a list of all names.
        hint: String,
    },
    /// The simulator does not run on fabrics of this family.
    #[error("the {simulator} simulator cannot run on {family}: {hint}")]
    Fabric {
        /// Name of the simulator.
        simulator: &'static str,
        /// Family of the fabric.
        family: &'static str,
        /// Reason, and the simulator to use instead.
        hint: &'static str,
    },
    /// The simulator does not know a setting, or the setting's value is invalid.
    #[error("{problem}")]
    Setting {
        /// Name of the setting.
        setting: &'static str,
        /// Problem with the setting, and a way to correct it.
        problem: String,
    },
    /// The fabric cannot carry a transfer; a verified plan has no such transfer.
    #[error("transfer {transfer} cannot be simulated: {problem}; verify the plan first")]
    Transfer {
        /// The transfer's index in the plan.
        transfer: usize,
        /// Problem with the transfer.
        problem: &'static str,
    },
    /// The simulator cannot compute a time for this plan or traffic.
    #[error("{problem}")]
    Refused {
        /// Kind of problem, in one word.
        code: &'static str,
        /// Problem, and a way to correct it.
        problem: String,
    },
    /// The simulation reached its time limit or was interrupted.
    #[error("{0}")]
    Stopped(String),
    /// A time exceeds 64 bits of picoseconds.
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
    /// Creates the error that a simulator cannot compute a time because of `problem`; `code` names
    /// the kind of problem in one word.
    pub fn refused(code: &'static str, problem: impl std::fmt::Display) -> SimulationError {
        SimulationError::Refused {
            code,
            problem: problem.to_string(),
        }
    }

    /// Creates the error that the value of `setting` is invalid because of `problem`.
    pub fn invalid_value(
        setting: &'static str,
        problem: impl std::fmt::Display,
    ) -> SimulationError {
        SimulationError::Setting {
            setting,
            problem: format!("{setting}: {problem}"),
        }
    }

    /// Creates the error that `simulator` does not support `policy`; `reason` names the policies
    /// that the simulator supports.
    pub fn unsupported_policy(simulator: &str, policy: Policy, reason: &str) -> SimulationError {
        SimulationError::Setting {
            setting: "policy",
            problem: format!(
                "the {simulator} simulator does not know the policy `{}`: {reason}",
                policy.name()
            ),
        }
    }

    /// Creates the error that `simulator` does not know `setting`; `of` names the owner of the
    /// setting, such as other simulators.
    pub fn unknown_setting(simulator: &str, setting: &'static str, of: &str) -> SimulationError {
        SimulationError::Setting {
            setting,
            problem: format!(
                "the {simulator} simulator does not know the setting `{setting}`, which belongs to \
                 {of}; leave the {setting} out"
            ),
        }
    }

    /// Returns the name of the setting that caused the error, or `None` if no setting did.
    pub fn setting(&self) -> Option<&'static str> {
        match self {
            SimulationError::Setting { setting, .. } => Some(setting),
            SimulationError::Fabric { .. } => Some("simulator"),
            SimulationError::Unknown { what, .. } if *what == "simulator" => Some(what),
            _ => None,
        }
    }
}

/// Rule that defines when a reconfiguration costs time. Times are comparable only under the same
/// policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Every slot costs one reconfiguration, as in the OpTree and WRHT papers.
    EveryStep,
    /// Each run of consecutive slots whose circuits can all be up at the same time costs one
    /// reconfiguration before its first slot.
    OnChange,
    /// Only ports whose circuits change wait for a reconfiguration; there are no barriers between
    /// slots.
    PerPort,
    /// No reconfiguration costs time: the circuits are static.
    Free,
    /// Policy of grids of tunable circuits: slow switches are set once for a task, and a laser is
    /// tuned whenever a flow needs another circuit.
    TwoTier,
    /// Policy of grids of lightpaths: each run of slots in which no port changes its lightpath
    /// costs one reconfiguration.
    SetupTeardown,
    /// Policy of circuit switches: each run of slots in which no port changes its circuit costs one
    /// reconfiguration, during which no rank sends.
    AllStop,
    /// Policy of parallel circuit switches: each switch follows `AllStop`, while the other switches
    /// continue to send.
    Planes,
}

/// Declaration of a policy or of a start rule.
pub struct PolicyRecord<P> {
    /// Name, as typed by users.
    pub name: &'static str,
    /// Summary in one sentence.
    pub summary: &'static str,
    /// Source of the policy.
    pub citation: &'static str,
    /// Policy or start rule that the name stands for.
    pub policy: P,
}

/// All policies, in the order of [`Policy`]. The first policy is the default on WDM rings.
pub const POLICIES: &[PolicyRecord<Policy>] = &[
    PolicyRecord {
        name: "every_step",
        summary: "Reconfiguration is charged at every slot",
        citation: "Dai et al., OpTree, section III.D; WRHT poster",
        policy: Policy::EveryStep,
    },
    PolicyRecord {
        name: "on_change",
        summary: "Reconfiguration is charged once for consecutive slots whose circuits can all \
        be up together",
        citation: "opticoll",
        policy: Policy::OnChange,
    },
    PolicyRecord {
        name: "per_port",
        summary: "Reconfiguration is charged to ports whose circuit changes, without barriers \
                  between slots",
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
        summary: "Slow switches are set once for a task; a laser is tuned if a flow needs \
                  another circuit",
        citation: "Li et al., Accelerate Distributed Deep Learning with a Fast Reconfigurable \
                   Optical Network, OFC 2024",
        policy: Policy::TwoTier,
    },
    PolicyRecord {
        name: "setup_teardown",
        summary: "Lightpaths are set up, used and torn down, for as many partners at a time as \
                  a rank has ports",
        citation: "Matsuoka, Takizawa, Nakada, Koga and Takada, MPI Collective Communication over \
                   OBS Grid",
        policy: Policy::SetupTeardown,
    },
    PolicyRecord {
        name: "all_stop",
        summary: "The whole switch is dark while its configuration changes, once for consecutive \
        slots in which no port changes its circuit",
        citation: "Wang et al., Your Data Center Switch is Trying Too Hard, SOSR 2016; opticoll",
        policy: Policy::AllStop,
    },
    PolicyRecord {
        name: "planes",
        summary: "A switch is dark while its configuration changes; the other switches keep \
        sending",
        citation: "opticoll",
        policy: Policy::Planes,
    },
];

/// Returns the value whose name is `name`; `what` is the kind of name, for the error.
fn find_by_name<V>(
    what: &'static str,
    name: &str,
    mut entries: impl Iterator<Item = (&'static str, V)> + Clone,
) -> Result<V, SimulationError> {
    let names = entries.clone().map(|(entry_name, _)| entry_name);
    let entry = entries.find(|(entry_name, _)| same_name(entry_name, name));
    entry
        .map(|(_, value)| value)
        .ok_or_else(|| SimulationError::Unknown {
            what,
            name: name.into(),
            hint: suggest(name, names),
        })
}

impl Policy {
    /// Policies on WDM rings.
    pub const ALL: [Policy; 4] = [
        Policy::EveryStep,
        Policy::OnChange,
        Policy::PerPort,
        Policy::Free,
    ];

    /// Returns the policy's name, as typed by users.
    pub fn name(self) -> &'static str {
        POLICIES[self as usize].name
    }
}

impl FromStr for Policy {
    type Err = SimulationError;

    fn from_str(name: &str) -> Result<Policy, SimulationError> {
        let entries = POLICIES.iter().map(|record| (record.name, record.policy));
        find_by_name("policy", name, entries)
    }
}

/// Initial length of a time bin in the time-line of the packet simulator. If a simulation needs too
/// many bins, the length is doubled.
pub const TIMELINE_BIN: Time = Time::from_ps(10_000);

/// Returns the fabric's default policy: the first policy of the fabric's circuits, or `every_step`
/// if the fabric has no circuits.
pub fn default_policy(fabric: &Fabric) -> Policy {
    let policies = fabric
        .circuits()
        .map_or(&[][..], |circuits| circuits.policies());
    let first = policies.first().and_then(|(name, _)| name.parse().ok());
    first.unwrap_or(Policy::EveryStep)
}

/// Returns the options of the `fluid` simulator, including the flows of the background traffic.
///
/// # Errors
/// Returns an error for background traffic that does not fit the fabric.
pub fn fluid_options(
    fabric: &Fabric,
    method: &TimingModel,
) -> Result<fluid::FlowOptions, SimulationError> {
    let mut options = method.fluid.clone();
    options.limit = method.limit;
    for traffic in &method.background {
        options.background.extend(traffic.flows(fabric)?);
    }
    Ok(options)
}

/// Returns the settings of the `packet` simulator, including the background traffic.
///
/// # Errors
/// Returns an error for background traffic that the fabric or the simulator does not
/// support.
pub fn packet_settings(
    fabric: &Fabric,
    method: &TimingModel,
) -> Result<packet::PacketSettings, SimulationError> {
    let mut settings = method.packet.clone();
    for traffic in &method.background {
        let background = traffic.packets(fabric, packet::Draws::Background)?;
        settings.background.push(background);
    }
    Ok(settings)
}

/// Returns the fabric as the machine type `M`, or an error that suggests another simulator if the
/// fabric has another type.
fn require_machine<'a, M: Named>(
    fabric: &'a Fabric,
    simulator: &'static str,
) -> Result<&'a M, SimulationError> {
    fabric.downcast().ok_or(SimulationError::Fabric {
        simulator,
        family: fabric.family(),
        hint: match fabric.has_light() {
            true => "its circuits are of another kind; use circuit",
            false => "it is an electrical fabric without circuits; use fluid",
        },
    })
}

/// Returns the fabric's circuits, or an error if the fabric is electrical.
fn require_circuits<'a>(
    fabric: &'a Fabric,
    simulator: &'static str,
) -> Result<&'a dyn Circuits, SimulationError> {
    fabric.circuits().ok_or(SimulationError::Fabric {
        simulator,
        family: fabric.family(),
        hint: "it is an electrical fabric without circuits; use fluid",
    })
}

/// Checks that all slots exist, and that each transfer's relays follow one another in the order of
/// slots. The simulators rely on both.
fn check_slots(plan: &Plan) -> Result<(), SimulationError> {
    let refused = |transfer: usize, problem| Err(SimulationError::Transfer { transfer, problem });
    let slots = plan.slots();
    let missing = "its slot is after the last slot";
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
                "it has relays, but the light of this fabric leads straight from rank to rank",
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

/// Checks that the links of all routes exist. The verifier checks that routes connect their ranks.
fn check_routes(plan: &Plan, network: &dyn Network) -> Result<(), SimulationError> {
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

/// Returns the groups of a plan, or an error that names a group that no switch can carry out.
fn groups(plan: &Plan, network: &dyn Network) -> Result<Groups, SimulationError> {
    Groups::of(network, &plan.schedule, &plan.routes).map_err(|transfer| {
        let problem = "the switches of the fabric cannot carry out its multicast or aggregation";
        SimulationError::Transfer { transfer, problem }
    })
}

#[cold]
fn missing_chunks(transfer: usize) -> SimulationError {
    SimulationError::Transfer {
        transfer,
        problem: "it carries chunks that do not exist",
    }
}

/// Appends the circuit of each hop to `measured`, or returns an error that names the transfer of a
/// hop without a circuit. `transfer_of` maps the index of a hop to its transfer.
fn measure_circuits(
    circuits: &dyn Circuits,
    hops: &[Hop],
    routes: &NamedRoutes,
    measured: &mut Vec<Circuit>,
    transfer_of: impl Fn(usize) -> u32,
) -> Result<(), SimulationError> {
    for (index, hop) in hops.iter().enumerate() {
        measured.push(match circuits.circuit(hop, routes) {
            Ok(circuit) => circuit,
            Err(NoCircuit::Unit(problem)) => return Err(problem.into()),
            Err(NoCircuit::Absent(problem)) => {
                let transfer = transfer_of(index) as usize;
                return Err(SimulationError::Transfer { transfer, problem });
            }
        });
    }
    Ok(())
}

/// Returns the fabric's network of links, or an error if the fabric has circuits instead of links.
fn require_network<'a>(
    fabric: &'a Fabric,
    simulator: &'static str,
) -> Result<&'a dyn Network, SimulationError> {
    fabric.network().ok_or(SimulationError::Fabric {
        simulator,
        family: fabric.family(),
        hint: NO_LINKS,
    })
}

/// Reason why a simulator of links rejects a fabric with circuits.
const NO_LINKS: &str = "it has no links that messages share; use circuit";
