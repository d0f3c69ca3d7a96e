//! List of all simulators, and selection of a simulator for a fabric and a method.

mod bulk_synchronous;
mod burst;
mod circuit;
pub(super) mod control;
mod fluid;
mod packet;

use super::packet::PacketProgress;
use super::timing_model::{Case, Simulator, TimingModel, Unfit, settings};
use super::{Policy, SimulationError};
use crate::outcome::Outcome;
use opticoll_base::names::{same_name, suggest};
use opticoll_base::units::Bytes;
use opticoll_fabric::fabric::Fabric;
use opticoll_plan::plan::Plan;

/// All simulators. If a method names no simulator, the first simulator that applies is selected.
pub const SIMULATORS: &[Simulator] = &[
    control::RECORD,
    circuit::RECORD,
    fluid::RECORD,
    packet::RECORD,
    bulk_synchronous::RECORD,
    burst::RECORD,
];

impl Simulator {
    /// Returns the simulator with the name `name`.
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

    /// Returns the simulator of `method` on `fabric`. If the method names no simulator, returns the
    /// first simulator that applies.
    ///
    /// # Errors
    /// Returns an error if the simulator does not support the fabric, the policy or a given
    /// setting.
    pub fn of(
        fabric: &Fabric,
        method: &TimingModel,
    ) -> Result<&'static Simulator, SimulationError> {
        Simulator::selected(fabric, method).checked(fabric, method)
    }

    /// Returns the simulator of `method` on `fabric` for single messages.
    ///
    /// # Errors
    /// Fails as [`Simulator::of`] does.
    pub fn for_messages(
        fabric: &Fabric,
        method: &TimingModel,
    ) -> Result<&'static Simulator, SimulationError> {
        Simulator::selected_for_messages(fabric, method).checked(fabric, method)
    }

    fn checked(
        &'static self,
        fabric: &Fabric,
        method: &TimingModel,
    ) -> Result<&'static Simulator, SimulationError> {
        let simulator = self;
        // On an unsuitable fabric, the fabric is the mistake and not a setting.
        let applies = (simulator.applies)(fabric, method);
        if let Err(Unfit::Fabric(hint)) = applies {
            return Err(simulator.not_on(fabric, hint));
        }
        if let Err(error) = method.check_known_to(simulator.name) {
            let other = SIMULATORS.iter().find(|other| {
                let known = method.check_known_to(other.name).is_ok();
                known && (other.applies)(fabric, method).is_ok()
            });
            return Err(match (error, other) {
                (SimulationError::Setting { setting, problem }, Some(other)) => {
                    let problem = format!("{problem}, or use the simulator {}", other.name);
                    SimulationError::Setting { setting, problem }
                }
                (error, _) => error,
            });
        }
        if let Err(Unfit::Policy(policy, reason)) = applies {
            return Err(SimulationError::unsupported_policy(
                simulator.name,
                policy,
                reason,
            ));
        }
        Ok(simulator)
    }

    /// Returns the simulator of `method` on `fabric` without checking that it applies.
    pub fn selected(fabric: &Fabric, method: &TimingModel) -> &'static Simulator {
        let network = fabric.network();
        if method.simulator.is_none() && network.is_some_and(|links| links.library().is_some()) {
            return &bulk_synchronous::RECORD;
        }
        Simulator::first(fabric, method, |_| true)
    }

    /// Returns the simulator of `method` on `fabric` for single messages, without checking that it
    /// applies. The costs of a library are costs of whole calls, so they do not apply.
    pub fn selected_for_messages(fabric: &Fabric, method: &TimingModel) -> &'static Simulator {
        Simulator::first(fabric, method, |simulator| simulator.live.is_some())
    }

    /// Returns the simulator that `method` names, otherwise the first one that applies and that
    /// `fits`, otherwise the first one that applies.
    fn first(
        fabric: &Fabric,
        method: &TimingModel,
        fits: fn(&Simulator) -> bool,
    ) -> &'static Simulator {
        let applies = |simulator: &&Simulator| (simulator.applies)(fabric, method).is_ok();
        let first = || {
            let mut applying = SIMULATORS.iter().filter(applies);
            let any = applying.clone().next().unwrap_or(&SIMULATORS[0]);
            applying.find(|simulator| fits(simulator)).unwrap_or(any)
        };
        method.simulator.unwrap_or_else(first)
    }

    /// Returns whether the simulator knows a setting.
    pub fn has_setting(&self, setting: &str) -> bool {
        let mut of_simulator = settings().filter(|record| record.simulators.contains(&self.name));
        of_simulator.any(|record| record.name == setting)
    }

    /// Creates the error that the simulator does not run on `fabric`; `hint` names the simulator to
    /// use instead.
    pub fn not_on(&self, fabric: &Fabric, hint: &'static str) -> SimulationError {
        SimulationError::Fabric {
            simulator: self.name,
            family: fabric.family(),
            hint,
        }
    }
}

/// Returns the simulator that runs on `fabric` if the method names none.
pub fn default_simulator(fabric: &Fabric) -> &'static Simulator {
    Simulator::selected(fabric, &TimingModel::default())
}

impl TimingModel {
    /// Reads a method from pairs of name and value. A name is `simulator` or the name of a setting
    /// of [`settings`].
    ///
    /// # Errors
    /// Returns an error for an unknown simulator or setting, or for an invalid value.
    /// [`SimulationError::setting`] names the setting at fault.
    pub fn from_settings<'a>(
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<TimingModel, SimulationError> {
        let mut method = TimingModel::default();
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
/// Returns an error if the simulator does not support the fabric or a setting, if a transfer leaves
/// the fabric, or if a time exceeds 64 bits of picoseconds.
pub fn run(plan: &Plan, size: Bytes, method: &TimingModel) -> Result<Outcome, SimulationError> {
    run_watched(plan, size, method, &mut |_| true)
}

/// Simulates a plan and reports progress. The packet simulator calls `watch` about once per million
/// events and stops if `watch` returns false.
///
/// # Errors
/// Returns the errors of [`run`], and [`SimulationError::Stopped`] if `watch` returned false.
pub fn run_watched(
    plan: &Plan,
    size: Bytes,
    method: &TimingModel,
    watch: &mut dyn FnMut(&PacketProgress) -> bool,
) -> Result<Outcome, SimulationError> {
    let fabric = &plan.fabric;
    let simulator = Simulator::of(fabric, method)?;
    let Some(run) = simulator.run else {
        return Err(simulator.not_on(fabric, "it carries messages and bursts, not plans"));
    };
    if plan.schedule.is_in_network() && !simulator.in_network {
        let able = SIMULATORS.iter().filter(|one| one.in_network);
        let able: Vec<&str> = able.map(|one| one.name).collect();
        return Err(SimulationError::refused(
            "in_network",
            format!(
                "the {} simulator has no switches that add or multicast, which this plan needs; \
                 use {}",
                simulator.name,
                able.join(" or ")
            ),
        ));
    }
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

/// Simulates a plan under `policy` with the simulator that has the name `simulator`.
///
/// # Errors
/// Returns the errors of [`run`], and an error for an unknown simulator or a policy that the
/// simulator does not support.
pub fn simulate(
    plan: &Plan,
    size: Bytes,
    policy: Policy,
    simulator: &str,
) -> Result<Outcome, SimulationError> {
    let method = TimingModel {
        simulator: Some(Simulator::named(simulator)?),
        policy: Some(policy),
        ..TimingModel::default()
    };
    run(plan, size, &method)
}
