//! All simulators, each a record with its functions, and the way from a plan and a method to an outcome.

mod bulk_synchronous;
mod burst;
mod circuit;
pub(super) mod control;
mod fluid;
mod packet;

use super::method::{Case, Method, Simulator, Unfit, settings};
use super::packet::PacketProgress;
use super::{Policy, SimulationError};
use crate::outcome::Outcome;
use opticoll_base::names::{same_name, suggest};
use opticoll_base::units::Bytes;
use opticoll_fabric::fabric::Fabric;
use opticoll_plan::plan::Plan;

/// All simulators, in the order in which they are preferred where none is named.
pub const SIMULATORS: &[Simulator] = &[
    control::RECORD,
    circuit::RECORD,
    fluid::RECORD,
    packet::RECORD,
    bulk_synchronous::RECORD,
    burst::RECORD,
];

impl Simulator {
    /// The simulator with a name.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<&'static Simulator, SimulationError> {
        let found = SIMULATORS.iter().find(|one| same_name(one.name, name));
        found.ok_or_else(|| SimulationError::Unknown {
            what: "simulator",
            name: name.into(),
            hint: suggest(name, SIMULATORS.iter().map(|one| one.name)),
        })
    }

    /// The simulator of a method on a fabric: the one that it names, or the first that applies.
    ///
    /// # Errors
    /// A simulator for other fabrics, settings that it does not know.
    pub fn of(fabric: &Fabric, method: &Method) -> Result<&'static Simulator, SimulationError> {
        let simulator = Simulator::chosen(fabric, method);
        // The fabric comes first: to someone on the wrong one a setting is no mistake.
        let applies = (simulator.applies)(fabric, method);
        if let Err(Unfit::Fabric(hint)) = applies {
            return Err(simulator.not_on(fabric, hint));
        }
        method.known_to(simulator.name)?;
        if let Err(Unfit::Policy(policy, reason)) = applies {
            return Err(SimulationError::policy(simulator.name, policy, reason));
        }
        Ok(simulator)
    }

    /// The same, whether it runs there or not.
    pub fn chosen(fabric: &Fabric, method: &Method) -> &'static Simulator {
        let applies = |one: &&Simulator| (one.applies)(fabric, method).is_ok();
        let preferred = || SIMULATORS.iter().find(applies).unwrap_or(&SIMULATORS[0]);
        method.simulator.unwrap_or_else(preferred)
    }

    /// Whether it knows a setting.
    pub fn takes(&self, setting: &str) -> bool {
        let mut known = settings().filter(|record| record.simulators.contains(&self.name));
        known.any(|record| record.name == setting)
    }

    /// The error that the simulator does not run on a fabric.
    pub fn not_on(&self, fabric: &Fabric, hint: &'static str) -> SimulationError {
        SimulationError::Fabric {
            simulator: self.name,
            family: fabric.family(),
            hint,
        }
    }
}

/// The simulator that is used on a fabric where none is named.
pub fn default_simulator(fabric: &Fabric) -> &'static Simulator {
    Simulator::chosen(fabric, &Method::default())
}

impl Method {
    /// The method that names and texts give: `simulator`, and the settings of
    /// [`settings`].
    ///
    /// # Errors
    /// An unknown simulator or setting, or a value that is none; see [`SimulationError::setting`].
    pub fn from_settings<'a>(
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Method, SimulationError> {
        let mut method = Method::default();
        for (name, text) in settings {
            match name {
                "simulator" => method.simulator = Some(Simulator::named(text)?),
                _ => method.set(name, text)?,
            }
        }
        Ok(method)
    }
}

/// Times a plan.
///
/// # Errors
/// An unknown simulator or one for other fabrics, a setting that it does not know, a plan whose
/// transfers leave the fabric, or a time beyond 64 bits of picoseconds.
pub fn run(plan: &Plan, size: Bytes, method: &Method) -> Result<Outcome, SimulationError> {
    run_watched(plan, size, method, &mut |_| true)
}

/// The same; the packet simulator tells `watch` about every million events how far it is, and is broken
/// off where that says no.
///
/// # Errors
/// Those of [`run`], and [`SimulationError::Stopped`].
pub fn run_watched(
    plan: &Plan,
    size: Bytes,
    method: &Method,
    watch: &mut dyn FnMut(&PacketProgress) -> bool,
) -> Result<Outcome, SimulationError> {
    let fabric = &plan.fabric;
    let simulator = Simulator::of(fabric, method)?;
    let Some(run) = simulator.run else {
        return Err(simulator.not_on(fabric, "it carries messages and bursts, no plans"));
    };
    let outcome = run(Case {
        plan,
        size,
        method,
        watch,
    })?;
    Ok(Outcome {
        simulator: simulator.name,
        ..outcome
    })
}

/// Runs the simulator with a name on a fabric of light.
///
/// # Errors
/// An unknown name, a policy that the simulator does not know, a plan whose transfers leave the
/// fabric, or a time beyond 64 bits of picoseconds.
pub fn simulate(
    plan: &Plan,
    size: Bytes,
    policy: Policy,
    simulator: &str,
) -> Result<Outcome, SimulationError> {
    let method = Method {
        simulator: Some(Simulator::named(simulator)?),
        policy: Some(policy),
        ..Method::default()
    };
    run(plan, size, &method)
}
