//! List of simulators, each a record with its functions; selection of a simulator for a plan and a
//! method.

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

/// All simulators, in order of preference if the method names none.
pub const SIMULATORS: &[Simulator] = &[
    control::RECORD,
    circuit::RECORD,
    fluid::RECORD,
    packet::RECORD,
    bulk_synchronous::RECORD,
    burst::RECORD,
];

impl Simulator {
    /// Returns the simulator with a name.
    ///
    /// # Errors
    /// Returns an error if no simulator has this name.
    pub fn named(name: &str) -> Result<&'static Simulator, SimulationError> {
        let simulator = SIMULATORS
            .iter()
            .find(|simulator| same_name(simulator.name, name));
        simulator.ok_or_else(|| SimulationError::Unknown {
            what: "simulator",
            name: name.into(),
            hint: suggest(name, SIMULATORS.iter().map(|simulator| simulator.name)),
        })
    }

    /// Returns the simulator of a method on a fabric: the one that the method names, or the first
    /// that applies.
    ///
    /// # Errors
    /// Returns an error if the simulator is for other fabrics or policies, or does not know a
    /// setting.
    pub fn of(fabric: &Fabric, method: &Method) -> Result<&'static Simulator, SimulationError> {
        let simulator = Simulator::selected(fabric, method);
        // Check the fabric first: on an unsuitable fabric, a setting is not the mistake.
        let applies = (simulator.applies)(fabric, method);
        if let Err(Unfit::Fabric(hint)) = applies {
            return Err(simulator.not_on(fabric, hint));
        }
        method.check_known_to(simulator.name)?;
        if let Err(Unfit::Policy(policy, reason)) = applies {
            return Err(SimulationError::unsupported_policy(
                simulator.name,
                policy,
                reason,
            ));
        }
        Ok(simulator)
    }

    /// Returns the simulator of a method on a fabric, without checking that it applies.
    pub fn selected(fabric: &Fabric, method: &Method) -> &'static Simulator {
        let applies = |simulator: &&Simulator| (simulator.applies)(fabric, method).is_ok();
        let preferred = || SIMULATORS.iter().find(applies).unwrap_or(&SIMULATORS[0]);
        method.simulator.unwrap_or_else(preferred)
    }

    /// Returns whether the simulator knows a setting.
    pub fn has_setting(&self, setting: &str) -> bool {
        let mut known = settings().filter(|record| record.simulators.contains(&self.name));
        known.any(|record| record.name == setting)
    }

    /// Returns the error for a fabric on which the simulator does not run.
    pub fn not_on(&self, fabric: &Fabric, hint: &'static str) -> SimulationError {
        SimulationError::Fabric {
            simulator: self.name,
            family: fabric.family(),
            hint,
        }
    }
}

/// Returns the simulator that runs on a fabric if the method names none.
pub fn default_simulator(fabric: &Fabric) -> &'static Simulator {
    Simulator::selected(fabric, &Method::default())
}

impl Method {
    /// Reads a method from names and texts: `simulator`, and the settings of [`settings`].
    ///
    /// # Errors
    /// Returns an error for an unknown simulator or setting, or an invalid value; see
    /// [`SimulationError::setting`].
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

/// Simulates a plan.
///
/// # Errors
/// Returns an error for a simulator of other fabrics, a setting that the simulator does not know, a
/// plan whose transfers leave the fabric, or a time beyond 64 bits of picoseconds.
pub fn run(plan: &Plan, size: Bytes, method: &Method) -> Result<Outcome, SimulationError> {
    run_watched(plan, size, method, &mut |_| true)
}

/// Simulates a plan and reports progress. The packet simulator calls `watch` about every million
/// events and stops if the call returns false.
///
/// # Errors
/// Returns the errors of [`run`], and [`SimulationError::Stopped`] if `watch` stopped the
/// simulation.
pub fn run_watched(
    plan: &Plan,
    size: Bytes,
    method: &Method,
    watch: &mut dyn FnMut(&PacketProgress) -> bool,
) -> Result<Outcome, SimulationError> {
    let fabric = &plan.fabric;
    let simulator = Simulator::of(fabric, method)?;
    let Some(run) = simulator.run else {
        return Err(simulator.not_on(fabric, "it carries messages and bursts, not plans"));
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

/// Simulates a plan with the named simulator and a policy.
///
/// # Errors
/// Returns an error for an unknown name, a policy that the simulator does not know, a plan whose
/// transfers leave the fabric, or a time beyond 64 bits of picoseconds.
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
