//! The record of `closed_form`.

use super::control::no_controller;
use crate::method::{Case, Simulator, Unfit};
use crate::outcome::Outcome;
use crate::{SimulationError, circuit, closed_form, default_policy};

pub(super) const RECORD: Simulator = Simulator {
    run: Some(run),
    times_plans: false,
    ..Simulator::new(
        "closed_form",
        "Formula of a paper: its number of steps times its time of a step",
        "Dai et al., OpTree, Theorem 3; WRHT poster, section 2",
        |fabric, _| match fabric.circuits().map(|circuits| circuits.formula_latency()) {
            Some(Some(_)) => Ok(()),
            Some(None) => no_controller(fabric).and(Err(Unfit::Fabric(closed_form::NO_FORMULA))),
            None => Err(Unfit::Fabric(
                "it is an electrical fabric without circuits; use fluid",
            )),
        },
    )
};

fn run(case: Case<'_>) -> Result<Outcome, SimulationError> {
    let policy = default_policy(&case.plan.fabric);
    let policy = case.method.policy.unwrap_or(policy);
    Ok(Outcome {
        utilisation: circuit::utilisation(case.plan),
        ..closed_form::simulate(case.plan, case.size, policy)?
    })
}
