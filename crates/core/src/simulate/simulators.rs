//! All simulators, each a record with its functions, and the way from a plan and a method to an outcome.

mod burst;
mod circuit;
mod closed_form;
pub(super) mod control;
mod fluid;
mod packet;

use std::fmt;

use super::live::Live;
use super::method::{Method, settings};
use super::packet::PacketProgress;
use super::{Policy, SimulationError, default_policy};
use crate::fabric::Fabric;
use crate::outcome::Outcome;
use crate::plan::PlanRef;
use crate::spelling::{same_name, suggest};
use crate::units::Bytes;

/// The declaration of a simulator.
pub struct Simulator {
    /// As typed.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Where it comes from.
    pub citation: &'static str,
    /// Whether it runs on a fabric with the given settings.
    pub applies: fn(&Fabric, &Method) -> Result<(), Unfit>,
    /// Times a plan.
    pub run: Option<for<'a> fn(Case<'a>) -> Result<Outcome, SimulationError>>,
    /// Carries single messages.
    pub live: Option<StartLive>,
    /// Whether its times are those of plans, not of formulas that know none.
    pub times_plans: bool,
    /// Whether no plan takes less than the loads of its schedule's steps, which are known before it is placed.
    pub bounded_by_loads: bool,
    /// The rule by which it times, in words that follow a time.
    pub rule: fn(&Fabric, &Method) -> String,
    /// What is to be said beside a lower bound on its times.
    pub beside_bound: fn(&Fabric, &Method) -> Option<String>,
}

/// Starts a network without messages.
pub type StartLive =
    for<'a> fn(&'a Fabric, &'a Method) -> Result<Box<dyn Live + 'a>, SimulationError>;

/// Why a simulator does not run: the reason says what would do.
pub enum Unfit {
    /// It is for other fabrics.
    Fabric(&'static str),
    /// It is for other policies.
    Policy(Policy, &'static str),
}

/// A plan to be timed.
pub struct Case<'a> {
    /// The plan.
    pub plan: PlanRef<'a>,
    /// The collective's size.
    pub size: Bytes,
    /// The settings, which the simulator knows.
    pub method: &'a Method,
    /// Is told now and then how far the simulation is; it is broken off where that says no.
    pub watch: &'a mut dyn FnMut(&PacketProgress) -> bool,
}

/// All simulators, in the order in which they are preferred where none is named.
pub const SIMULATORS: &[Simulator] = &[
    control::RECORD,
    circuit::RECORD,
    fluid::RECORD,
    packet::RECORD,
    burst::RECORD,
    closed_form::RECORD,
];

impl fmt::Debug for Simulator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

impl Simulator {
    /// A simulator of circuits that carries nothing yet.
    const fn new(
        name: &'static str,
        summary: &'static str,
        citation: &'static str,
        applies: fn(&Fabric, &Method) -> Result<(), Unfit>,
    ) -> Simulator {
        Simulator {
            name,
            summary,
            citation,
            applies,
            run: None,
            live: None,
            times_plans: true,
            bounded_by_loads: false,
            rule: |fabric, method| {
                let policy = method.policy.unwrap_or(default_policy(fabric));
                format!("under {}", policy.name())
            },
            beside_bound: |_, _| None,
        }
    }

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
    /// [`settings`](super::method::settings).
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
/// Those of [`run`], and [`SimulationError::Stopped`].
pub fn run_watched<'a>(
    plan: impl Into<PlanRef<'a>>,
    size: Bytes,
    method: &Method,
    watch: &mut dyn FnMut(&PacketProgress) -> bool,
) -> Result<Outcome, SimulationError> {
    let plan = plan.into();
    let fabric = &plan.kept().fabric;
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
pub fn simulate<'a>(
    plan: impl Into<PlanRef<'a>>,
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
